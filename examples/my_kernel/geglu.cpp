// The op kind's reference in fp64, which every kernel for it is verified against, and a kernel for the CPU.
#include "geglu.h"

#include <numbers>

namespace {

std::vector<kbench::reference::Expected> expected(const GeGlu& op, kbench::reference::Question question) {
    const kbench::reference::View gate_up = question.next();
    std::vector<kbench::reference::Expected> values;
    for (const auto [row, column] : question.elements) {
        const double gate = gate_up(row, column), up = gate_up(row, op.width + column);
        const double value = 0.5 * gate * std::erfc(-gate / std::numbers::sqrt2) * up;
        // The magnitude bounds the error of any way to compute it, in roundings of a term: the six operations each
        // round once, and 1 + erf cancels for a negative gate, so that they are relative to the product without it.
        values.push_back({value, 6 * std::abs(gate * up), 2});
    }
    return values;
}

template <class T>
void gate(const GeGlu& op, kbench::OperandCursor operands) {
    const T* gate_up = operands.next<const T>();
    T* out = operands.next<T>();
#pragma omp parallel for
    for (std::int64_t row = 0; row < op.rows; ++row)
        for (std::int64_t column = 0; column < op.width; ++column) {
            const T x = gate_up[row * 2 * op.width + column], up = gate_up[(row * 2 + 1) * op.width + column];
            out[row * op.width + column] = T(0.5) * x * (1 + std::erf(x / std::numbers::sqrt2_v<T>)) * up;
        }
}

const bool known = kbench::register_op<GeGlu>({.expected = expected});

const bool registered = kbench::register_kernel<GeGlu>({
    .name = "mine",
    .backend = kbench::BackendKind::cpu,
    .what = "layer norm and GEGLU in plain C++",
    .precisions = {kbench::Precision::fp32, kbench::Precision::fp64},
    .run =
        [](const GeGlu& op, const kbench::KernelCall& call) {
            if (call.precision == kbench::Precision::fp64)
                gate<double>(op, call.operands);
            else
                gate<float>(op, call.operands);
        },
});

}  // namespace
