// Tables of counters with what each is worth in FLOPs, and the table of what each precision may not execute.
#include "analysis/explain/executed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <vector>

#include "models/base/format.h"

namespace kbench {
namespace {

struct TensorType {
    Precision type;
    std::string_view counter;
};
constexpr std::array tensor_types{
    TensorType{Precision::fp16, "tensor_fp16_ops"}, TensorType{Precision::bf16, "tensor_bf16_ops"},
    TensorType{Precision::tf32, "tensor_tf32_ops"}, TensorType{Precision::fp64, "tensor_fp64_ops"}};

/// FLOPs of a thread instruction on plain cores.
struct PlainInstruction {
    Precision precision;
    std::string_view counter;
    double flops;
    bool everywhere = true;  ///< false: of chips that have it, and nothing is missing without it
};
constexpr PlainInstruction plain_instructions[] = {
    {Precision::fp16, "sass_hadd", 2},         {Precision::fp16, "sass_hmul", 2},
    {Precision::fp16, "sass_hfma", 4},         {Precision::fp32, "sass_fadd", 1},
    {Precision::fp32, "sass_fmul", 1},         {Precision::fp32, "sass_ffma", 2},
    {Precision::fp32, "sass_fadd2", 2, false}, {Precision::fp32, "sass_fmul2", 2, false},
    {Precision::fp32, "sass_ffma2", 4, false}, {Precision::fp64, "sass_dadd", 1},
    {Precision::fp64, "sass_dmul", 1},         {Precision::fp64, "sass_dfma", 2}};

/// The tensor pipe's active cycles from which on they must be products of matrices. Below there may be none: compilers
/// move constants with HFMA2.MMA, which runs on that pipe (up to 1.6 % of the cycles of a layer norm on an H200).
constexpr double products_active_pct = 5;

/// a + b, nothing if either is.
std::optional<double> plus(const std::optional<double>& a, const std::optional<double>& b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
}

std::optional<double> all_tensor_flops(const StepResult& step) {
    std::optional<double> total = 0;
    for (const TensorType& tensor : tensor_types) total = plus(total, counter(step, tensor.counter));
    return total;
}

bool is_positive(const std::optional<double>& amount) { return amount.value_or(0) > 0; }

/// What a step may not execute when it was asked for a precision.
struct PrecisionRule {
    Precision asked;
    std::span<const Precision> foreign;  ///< types of tensor-core inputs
    bool no_tensor_cores = false;        ///< not even with inputs of a type that was not counted
    bool matrices_on_tensor_cores = false;
    std::optional<Precision> narrower{};  ///< plain FLOPs of it may not outweigh those asked for in matrix products
};
constexpr Precision not_fp16[] = {Precision::bf16, Precision::tf32}, not_bf16[] = {Precision::fp16, Precision::tf32},
                    not_tf32[] = {Precision::fp16, Precision::bf16},
                    not_fp64[] = {Precision::fp16, Precision::bf16, Precision::tf32},
                    not_fp32[] = {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp64};
constexpr PrecisionRule rules[] = {
    {.asked = Precision::fp16, .foreign = not_fp16, .matrices_on_tensor_cores = true},
    {.asked = Precision::bf16, .foreign = not_bf16, .matrices_on_tensor_cores = true},
    {.asked = Precision::tf32, .foreign = not_tf32, .matrices_on_tensor_cores = true},
    {.asked = Precision::fp32, .foreign = not_fp32, .no_tensor_cores = true},
    {.asked = Precision::fp64, .foreign = not_fp64, .narrower = Precision::fp32},
};

const PrecisionRule& rule_of(Precision asked) {
    for (const PrecisionRule& rule : rules)
        if (rule.asked == asked) return rule;
    throw std::logic_error(fmt::format("no rule for {}", name(asked)));
}

/// "tf32: 2.70 GFLOP", for each foreign type that ran.
std::vector<std::string> foreign_operations(const StepResult& step, const PrecisionRule& rule) {
    std::vector<std::string> found;
    for (const Precision type : rule.foreign)
        if (const auto operations = tensor_flops(step, type); is_positive(operations))
            found.push_back(fmt::format("{}: {}", name(type), format_flop(*operations)));
    return found;
}

std::optional<std::string> tensor_cores_astray(const StepResult& step, const PrecisionRule& rule) {
    std::vector<std::string> found = foreign_operations(step, rule);
    if (found.empty() && rule.no_tensor_cores && tensor_cores_used(step).value_or(false))
        found.emplace_back("inputs not counted by type");
    if (found.empty()) return std::nullopt;
    return fmt::format("tensor cores were active ({})", fmt::join(found, ", "));
}

std::optional<std::string> matrices_on_plain_cores(const StepResult& step, const PrecisionRule& rule) {
    if (!rule.matrices_on_tensor_cores || step.matrix_flops <= 0 || tensor_cores_used(step).value_or(true))
        return std::nullopt;
    return "ran on plain cores";
}

std::optional<std::string> outweighed(const StepResult& step, const PrecisionRule& rule) {
    if (!rule.narrower || step.matrix_flops <= 0) return std::nullopt;
    const std::optional<double> narrow = plain_flops(step, *rule.narrower), asked = executed_flops(step, rule.asked);
    if (!narrow || !asked || *narrow <= *asked) return std::nullopt;
    return fmt::format("most FLOPs were {} ({}, not {})", name(*rule.narrower), format_flop(*narrow),
                       format_flop(*asked));
}

}  // namespace

std::optional<double> counter(const StepResult& step, std::string_view name) {
    const auto found = step.counters.find(std::string(name));
    return found == step.counters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> tensor_flops(const StepResult& step, Precision type) {
    for (const TensorType& tensor : tensor_types)
        if (tensor.type == type) return counter(step, tensor.counter);
    return std::nullopt;
}

std::optional<double> plain_flops(const StepResult& step, Precision precision) {
    if (precision == Precision::tf32) return std::nullopt;
    const Precision counted = precision == Precision::bf16 ? Precision::fp16 : precision;
    double total = 0;
    for (const PlainInstruction& instruction : plain_instructions) {
        if (instruction.precision != counted) continue;
        const std::optional<double> executed = counter(step, instruction.counter);
        if (!executed && instruction.everywhere) return std::nullopt;
        total += executed.value_or(0) * instruction.flops;
    }
    return total;
}

std::optional<double> executed_flops(const StepResult& step, Precision precision) {
    if (precision == Precision::fp32) return plain_flops(step, precision);
    const std::optional<double> tensor = tensor_flops(step, precision);
    return precision == Precision::fp64 ? plus(tensor, plain_flops(step, precision)) : tensor;
}

std::optional<double> executed_flops(const StepResult& step) {
    std::optional<double> total = all_tensor_flops(step);
    for (const Precision precision : {Precision::fp16, Precision::fp32, Precision::fp64})
        total = plus(total, plain_flops(step, precision));
    return total;
}

std::string_view proof_counter(Precision asked) {
    for (const TensorType& tensor : tensor_types)
        if (tensor.type == (asked == Precision::fp32 ? Precision::tf32 : asked)) return tensor.counter;
    throw std::logic_error(fmt::format("no tensor-core counter for {}", name(asked)));
}

std::optional<bool> tensor_cores_used(const StepResult& step) {
    if (is_positive(counter(step, "tcgen05_inst"))) return true;
    for (const TensorType& tensor : tensor_types)
        if (is_positive(counter(step, tensor.counter))) return true;
    if (all_tensor_flops(step)) return false;
    const std::optional<double> active_pct = counter(step, "tensor_pipe_active");
    if (!active_pct) return std::nullopt;
    if (*active_pct >= products_active_pct) return true;
    if (*active_pct == 0 || counter(step, proof_counter(step.precision))) return false;
    return std::nullopt;
}

std::optional<std::string> executed_mismatch(const StepResult& step) {
    const PrecisionRule& rule = rule_of(step.precision);
    std::vector<std::string> found;
    for (const auto contradiction : {tensor_cores_astray, matrices_on_plain_cores, outweighed})
        if (const auto finding = contradiction(step, rule)) found.push_back(*finding);
    if (found.empty()) return std::nullopt;
    return fmt::format("asked for {}, but {}", name(step.precision), fmt::join(found, " and "));
}

double kernels_us(const StepResult& step) {
    double us = 0;
    for (const KernelResult& kernel : step.kernels) us += kernel.time_us;
    return step.kernels.empty() ? step.device_us().value_or(0) : us;
}

double step_clock_mhz(const StepResult& step, double run_clock_mhz) {
    const double elapsed = counter(step, "sm_cycles_elapsed").value_or(0), time_ns = counter(step, "time").value_or(0);
    const double counted_mhz = elapsed > 0 && time_ns > 0 ? elapsed / time_ns * 1e3 : 0;
    if (run_clock_mhz <= 0) return counted_mhz;
    if (counted_mhz <= 0) return run_clock_mhz;
    const double us = kernels_us(step), active = counter(step, "sm_cycles_active").value_or(0);
    const bool fits = us <= 0 || active <= run_clock_mhz * us;
    return fits ? std::min(run_clock_mhz, counted_mhz) : std::max(run_clock_mhz, counted_mhz);
}

std::optional<double> sm_active_us(const StepResult& step, double run_clock_mhz) {
    const std::optional<double> active = counter(step, "sm_cycles_active");
    const double mhz = step_clock_mhz(step, run_clock_mhz);
    return active && mhz > 0 ? std::optional(*active / mhz) : std::nullopt;
}

std::optional<double> sm_active_pct(const StepResult& step, double run_clock_mhz) {
    const std::optional<double> active = sm_active_us(step, run_clock_mhz);
    const double us = kernels_us(step);
    if (!active || us <= 0) return std::nullopt;
    return std::min(100.0, 100 * *active / us);
}

}  // namespace kbench
