// A layer norm for the CPU, in plain C++: rows are spread over the cores. Registered below as provider `mine`.
#include <kbench/kernel.h>
#include <kbench/ops/layernorm.h>

#include <cmath>

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

const bool registered = kbench::register_kernel<kbench::LayerNorm>({
    .name = "mine",
    .backend = kbench::BackendKind::cpu,
    .what = "layer norm and GEGLU in plain C++",
    .precisions = {kbench::Precision::fp32, kbench::Precision::fp64},
    .run =
        [](const kbench::LayerNorm& norm, const kbench::KernelCall& call) {
            if (call.precision == kbench::Precision::fp64)
                run<double>(norm, call.operands);
            else
                run<float>(norm, call.operands);
        },
});

}  // namespace
