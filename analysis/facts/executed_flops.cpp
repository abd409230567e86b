// Tables of counters with what each is worth in FLOPs.
#include "analysis/facts/executed_flops.h"

namespace kbench {
namespace {

struct TensorType {
    Precision type;
    CounterOf counter;
};
constexpr TensorType tensor_types[] = {{Precision::fp16, &Counters::tensor_fp16_ops},
                                       {Precision::bf16, &Counters::tensor_bf16_ops},
                                       {Precision::tf32, &Counters::tensor_tf32_ops},
                                       {Precision::fp64, &Counters::tensor_fp64_ops}};

/// FLOPs of a thread instruction on plain cores.
struct PlainInstruction {
    Precision precision;
    CounterOf counter;
    double flops;
    bool everywhere = true;  ///< false: of chips that have it, and nothing is missing without it
};
constexpr PlainInstruction plain_instructions[] = {
    {Precision::fp16, &Counters::sass_hadd, 2},         {Precision::fp16, &Counters::sass_hmul, 2},
    {Precision::fp16, &Counters::sass_hfma, 4},         {Precision::fp32, &Counters::sass_fadd, 1},
    {Precision::fp32, &Counters::sass_fmul, 1},         {Precision::fp32, &Counters::sass_ffma, 2},
    {Precision::fp32, &Counters::sass_fadd2, 2, false}, {Precision::fp32, &Counters::sass_fmul2, 2, false},
    {Precision::fp32, &Counters::sass_ffma2, 4, false}, {Precision::fp64, &Counters::sass_dadd, 1},
    {Precision::fp64, &Counters::sass_dmul, 1},         {Precision::fp64, &Counters::sass_dfma, 2}};

/// a + b, nothing if either is.
std::optional<double> plus(const std::optional<double>& a, const std::optional<double>& b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace

CounterOf tensor_counter(Precision type) {
    for (const TensorType& tensor : tensor_types)
        if (tensor.type == type) return tensor.counter;
    return nullptr;
}

std::optional<double> tensor_flops(const Counters& counters, Precision type) {
    const CounterOf counter = tensor_counter(type);
    return counter != nullptr ? counters.*counter : std::nullopt;
}

std::optional<double> tensor_flops(const Counters& counters) {
    std::optional<double> total = 0;
    for (const TensorType& tensor : tensor_types) total = plus(total, counters.*tensor.counter);
    return total;
}

std::optional<double> plain_flops(const Counters& counters, Precision precision) {
    if (precision == Precision::tf32) return std::nullopt;
    const Precision counted = precision == Precision::bf16 ? Precision::fp16 : precision;
    double total = 0;
    for (const PlainInstruction& instruction : plain_instructions) {
        if (instruction.precision != counted) continue;
        const std::optional<double> executed = counters.*instruction.counter;
        if (!executed && instruction.everywhere) return std::nullopt;
        total += executed.value_or(0) * instruction.flops;
    }
    return total;
}

std::optional<double> executed_flops(const Counters& counters, Precision precision) {
    if (precision == Precision::fp32) return plain_flops(counters, precision);
    const std::optional<double> tensor = tensor_flops(counters, precision);
    return precision == Precision::fp64 ? plus(tensor, plain_flops(counters, precision)) : tensor;
}

std::optional<double> executed_flops(const Counters& counters) {
    std::optional<double> total = tensor_flops(counters);
    for (const Precision precision : {Precision::fp16, Precision::fp32, Precision::fp64})
        total = plus(total, plain_flops(counters, precision));
    return total;
}

}  // namespace kbench
