// The table of what each precision may not execute.
#include "analysis/explain/executed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "models/base/format.h"

namespace kbench {
namespace {

/// The tensor pipe's active cycles from which on they must be products of matrices. Below there may be none: compilers
/// move constants with HFMA2.MMA, which runs on that pipe (up to 1.6 % of the cycles of a layer norm on an H200).
constexpr double products_active_pct = 5;

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
    const Counters counters = counters_of(step);
    std::vector<std::string> found;
    for (const Precision type : rule.foreign)
        if (const auto operations = tensor_flops(counters, type); is_positive(operations))
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
    const Counters counters = counters_of(step);
    const std::optional<double> narrow = plain_flops(counters, *rule.narrower),
                                asked = executed_flops(counters, rule.asked);
    if (!narrow || !asked || *narrow <= *asked) return std::nullopt;
    return fmt::format("most FLOPs were {} ({}, not {})", name(*rule.narrower), format_flop(*narrow),
                       format_flop(*asked));
}

}  // namespace

Precision proof_type(Precision asked) { return asked == Precision::fp32 ? Precision::tf32 : asked; }

std::optional<bool> tensor_cores_used(const StepResult& step) {
    const Counters counters = counters_of(step);
    if (is_positive(counters.tcgen05_inst)) return true;
    for (const Precision type : all_precisions)
        if (is_positive(tensor_flops(counters, type))) return true;
    if (tensor_flops(counters)) return false;
    if (!counters.tensor_pipe_active) return std::nullopt;
    if (*counters.tensor_pipe_active >= products_active_pct) return true;
    if (*counters.tensor_pipe_active == 0 || tensor_flops(counters, proof_type(step.precision))) return false;
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

}  // namespace kbench
