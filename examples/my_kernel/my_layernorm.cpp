// A layer norm for the CPU, in plain C++: rows are spread over the cores. Registered below as provider `mine`.
#include <cmath>

#include "bench/plan/user_kernel.h"

namespace {

/// x, out: [rows, width]; weight, bias: [width].
template <class T>
void layer_norm(const T* x, const T* weight, const T* bias, T* out, std::int64_t rows, std::int64_t width,
                double epsilon) {
#pragma omp parallel for
    for (std::int64_t row = 0; row < rows; ++row) {
        const T* in = x + row * width;
        T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t column = 0; column < width; ++column) sum += in[column];
        const T mean = sum / static_cast<T>(width);
#pragma omp simd reduction(+ : squares)
        for (std::int64_t column = 0; column < width; ++column) squares += (in[column] - mean) * (in[column] - mean);
        const T rstd = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(epsilon));
        for (std::int64_t column = 0; column < width; ++column)
            out[row * width + column] = (in[column] - mean) * rstd * weight[column] + bias[column];
    }
}

template <class T>
void run(const kbench::LayerNorm& norm, kbench::OperandCursor operands) {
    const T* x = operands.next<const T>();
    const T* weight = operands.next<const T>();
    const T* bias = operands.next<const T>();
    T* out = operands.next<T>();
    layer_norm(x, weight, bias, out, norm.rows, norm.width, norm.epsilon);
}

const bool registered = kbench::register_kernel<kbench::NormStep>({
    .name = "mine",
    .backend = kbench::BackendKind::cpu,
    .what = "layer norm in plain C++",
    .precisions = {kbench::Precision::fp32, kbench::Precision::fp64},
    .run =
        [](const kbench::NormStep& step, kbench::Precision precision, kbench::OperandCursor operands, void*, void*) {
            if (precision == kbench::Precision::fp64)
                run<double>(step.norm, operands);
            else
                run<float>(step.norm, operands);
        },
    .unsupported = [](const kbench::NormStep& step, kbench::Precision) -> std::string {
        return step.pre_bias || step.residual ? "adds nothing before its layer norm" : "";
    },
});

}  // namespace
