// Builds the two results of the comparison.
#include "tests/analysis/compare/compare_example.h"

#include <utility>

namespace kbench::compare_example {

/// A median with its interval, in the unit of whoever holds it.
static Summary summary(double median, double low, double high) {
    Summary result;
    result.n = 11;
    result.independent = 11;
    result.median = result.mean = result.p25 = result.p75 = median;
    result.min = result.ci_low = low;
    result.max = result.ci_high = high;
    return result;
}

StepResult step(std::string layer, std::string op, double us, double flops, double bytes, double part) {
    StepResult result;
    result.layer = std::move(layer);
    result.op = std::move(op);
    result.absorbs = {result.layer + ":" + result.op};
    result.provider = "native";
    result.cost.flops = flops;
    result.cost.bytes_read[0] = bytes;
    result.time_us = summary(us, us * (1 - part), us * (1 + part));
    return result;
}

StepResult fused(StepResult step, std::vector<std::string> ops) {
    step.absorbs.insert(step.absorbs.end(), ops.begin(), ops.end());
    return step;
}

Point point(std::vector<StepResult> steps, double median_ms, double low_ms, double high_ms) {
    Point result;
    result.set("model", "gpt2");
    result.set("backend", "cuda");
    result.set("attention", "fused");
    result.set("batch", 2);
    result.set("seq", 100);
    result.set("precision", Precision::fp32);
    result.set("direction", "fwd");
    result.status = PointStatus::done;
    result.end_to_end.emplace();
    result.end_to_end->latency.summary_ms = summary(median_ms, low_ms, high_ms);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i].index = static_cast<int>(i);
        result.cost += steps[i].cost;
    }
    result.steps = std::move(steps);
    return result;
}

NamedResult run(std::string name, double dram_gb_per_s, double fp32_tflop_per_s, Point point) {
    NamedResult result;
    result.name = name;
    result.path = name + "/result.json";
    result.result.environment.host.cpu = "a CPU";
    const auto ceiling = [](std::string which, double value) {
        return Ceiling{
            std::move(which), Quantity::measured(value), value, value, 0, Quantity::unavailable("not stated")};
    };
    result.result.ceilings.ceilings = {ceiling("dram_read", dram_gb_per_s), ceiling("fp32_plain", fp32_tflop_per_s)};
    result.result.points = {std::move(point)};
    return result;
}

std::vector<StepResult> copy_and_product(double slower_bytes, double slower_flops) {
    return {step("wte", "embedding", 100 * slower_bytes, 1e6, 90e6),
            step("h.0.mlp", "gemm", 400 * slower_flops, 3.6e9, 4e6),
            step("h.1.mlp", "gemm", 400 * slower_flops, 3.6e9, 4e6)};
}

}  // namespace kbench::compare_example
