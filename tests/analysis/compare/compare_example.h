// Results of two machines for the tests of matching and comparison: steps whose roofs, times and intervals are given,
// so that every ratio is known before it is computed.
#pragma once

#include <string>
#include <vector>

#include "analysis/result/match.h"

namespace kbench::compare_example {

/// `part` is half of the interval's width over the median.
StepResult step(std::string layer, std::string op, double us, double flops, double bytes, double part = 0.01);
/// The same step, which computes `ops` as well.
StepResult fused(StepResult step, std::vector<std::string> ops);
Point point(std::vector<StepResult> steps, double median_ms, double low_ms, double high_ms);
/// One point on a GPU with these roofs.
NamedResult run(std::string name, double dram_gb_per_s, double fp32_tflop_per_s, Point point);
/// At 1000 GB/s and 10 TFLOP/s: a copy that takes 90 % of its time for DRAM, a product that takes 90 % for its FLOPs.
/// `slower_bytes`, `slower_flops`: how many times as long each takes on the other machine.
std::vector<StepResult> copy_and_product(double slower_bytes, double slower_flops);
}  // namespace kbench::compare_example
