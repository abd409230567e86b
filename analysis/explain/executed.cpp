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

/// Counters of products are exact; a later time step may skip a tile of zeros.
constexpr double least_of_products = 0.98;

/// Where products may be fewer than the definition has: Winograd's and FFT's convolutions.
struct MaySpare {
    std::string_view op, provider;
};
constexpr MaySpare may_spare[] = {{"conv2d", "cudnn"}};

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

/// FLOPs of the type asked for, on whatever unit computes products in it.
std::optional<double> product_flops(const Counters& counters, Precision asked) {
    return asked == Precision::fp32 ? plain_flops(counters, asked) : executed_flops(counters, asked);
}

std::optional<std::string> too_few(const StepResult& step) {
    const std::optional<double> least = least_product_flops(step),
                                executed = product_flops(counters_of(step), step.precision);
    if (!least || !executed || *executed >= least_of_products * *least) return std::nullopt;
    return fmt::format("its products need {}, and {} were {}", format_flop(*least), format_flop(*executed),
                       name(step.precision));
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
    if (found.empty())
        if (const auto finding = too_few(step)) found.push_back(*finding);
    if (found.empty()) return std::nullopt;
    return fmt::format("asked for {}, but {}", name(step.precision), fmt::join(found, " and "));
}

std::optional<double> least_product_flops(const StepResult& step) {
    if (step.matrix_flops <= 0) return std::nullopt;
    for (const MaySpare& row : may_spare)
        if (row.op == step.op && row.provider == step.provider) return std::nullopt;
    const double useful = step.cost.flops > 0 ? std::min(step.matrix_flops, step.cost.flops) : step.matrix_flops;
    const auto time_steps = static_cast<double>(step.time_steps.value_or(1));
    const double steps_share = time_steps > 1 ? (time_steps - 1) / time_steps : 1;
    const double least = (useful - step.spared_flops.value_or(0)) * steps_share;
    return least > 0 ? std::optional(least) : std::nullopt;
}

std::optional<bool> products_proven(const StepResult& step) {
    if (step.matrix_flops <= 0) return std::nullopt;
    if (executed_mismatch(step)) return false;
    const Counters counters = counters_of(step);
    if (step.precision == Precision::fp32) {
        const std::optional<double> tf32 = tensor_flops(counters, proof_type(step.precision));
        return tf32 ? std::optional(*tf32 == 0) : std::nullopt;
    }
    // Plain cores need not be counted where tensor cores' operations say it: fp64 has both.
    const std::optional<double> tensor = tensor_flops(counters, step.precision),
                                all = product_flops(counters, step.precision);
    if (!tensor && !all) return std::nullopt;
    const double executed = std::max(tensor.value_or(0), all.value_or(0));
    const double least = least_product_flops(step).value_or(0);
    if (executed > 0 && executed >= least_of_products * least) return true;
    return all ? std::optional(false) : std::nullopt;
}

}  // namespace kbench
