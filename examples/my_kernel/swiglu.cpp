// The op kind's reference in fp64, which every kernel for it is verified against, and a kernel for the CPU.
#include "swiglu.h"

namespace {

std::vector<kbench::reference::Expected> expected(const SwiGlu& op, kbench::reference::Question question) {
    const kbench::reference::View gate_up = question.next();
    std::vector<kbench::reference::Expected> values;
    for (const auto [row, column] : question.elements) {
        const double gate = gate_up(row, column), up = gate_up(row, op.width + column);
        const double value = gate / (1 + std::exp(-gate)) * up;
        // The magnitude bounds the error of any way to compute it, in roundings of a term: the five operations each
        // round once, and exp passes on an error of its argument as that argument's share of the result.
        values.push_back({value, std::abs(value) * (5 + std::abs(gate)), 2});
    }
    return values;
}

template <class T>
void gate(const SwiGlu& op, kbench::OperandCursor operands) {
    const T* gate_up = operands.next<const T>();
    T* out = operands.next<T>();
#pragma omp parallel for
    for (std::int64_t row = 0; row < op.rows; ++row)
        for (std::int64_t column = 0; column < op.width; ++column) {
            const T x = gate_up[row * 2 * op.width + column], up = gate_up[(row * 2 + 1) * op.width + column];
            out[row * op.width + column] = x / (1 + std::exp(-x)) * up;
        }
}

const bool known = kbench::register_op<SwiGlu>({.expected = expected});

const bool registered = kbench::register_kernel<SwiGlu>({
    .name = "mine",
    .backend = kbench::BackendKind::cpu,
    .what = "layer norm and SwiGLU in plain C++",
    .precisions = {kbench::Precision::fp32, kbench::Precision::fp64},
    .run =
        [](const SwiGlu& op, const kbench::KernelCall& call) {
            if (call.precision == kbench::Precision::fp64)
                gate<double>(op, call.operands);
            else
                gate<float>(op, call.operands);
        },
});

}  // namespace
