// A result as a run of kbench writes it, for the tests of JSON, schema and writers: GPT-2 large in fp16 on an H200 at
// batch 1 and 4, one point on the CPU, one that was skipped. The figures are plausible, not measured; nothing in it is
// random.
#pragma once

#include <string>

#include "kbench/result.h"

namespace kbench::example {

inline constexpr std::int64_t width = 1280, layers = 36, vocab = 50257, seq = 1024;

Timing timing(double median_ms, std::size_t n);
/// What differs between the points; times are the base of each step kind, microseconds.
struct Machine {
    std::string gemm_provider, attention_implementation;
    double qkv, attention, proj, fc, fc_proj, layernorm, head;
};

Point finished_point(std::string backend, Precision precision, std::int64_t batch, const Machine& machine,
                     double median_ms);
Point gpu_point(std::int64_t batch, const Machine& machine, double median_ms);
Point cpu_point();
Point skipped_point();
Result result();
/// A recorded kernel whose blocks fill the device once, and whose registers keep others from its SMs.
KernelResult one_wave_kernel(const std::string& short_name, double time_us);
/// What profiling adds to a GPU's point: a kernel a step, one counter, how both were taken.
void add_profile(Point& point);
/// The same with few steps and samples, so that a golden file of every field stays readable.
Result short_result();
/// The short result with what profiling adds.
Result profiled_result();
/// Eighteen points at as many batches, whole, with 24 counters a step and 200 readings of the conditions. No time and
/// no count is the same twice, as where they are measured.
Result long_result();

/// A file of results/, such as "h200-2026-11-23/fp16/result.json.gz": recorded, not an example.
Result committed_result(const std::string& name);
}  // namespace kbench::example
