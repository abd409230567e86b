// What a step executed, from its hardware counters: operations of tensor cores by their inputs' type, FLOPs on plain
// cores by precision, and whether that is what was asked for. Kernels' names are not looked at: they promise, counters
// tell. Counters and their units: bench/profile/metrics.txt.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kbench/result.h"

namespace kbench {

/// Schedulers of an SM, since Volta: each issues an instruction a cycle.
inline constexpr double schedulers = 4;

/// A counter of the step by kbench's name; nothing when it was not read.
std::optional<double> counter(const StepResult& step, std::string_view name);

/// Time of the step's kernels as recorded, microseconds; of a step without records, what it took.
double kernels_us(const StepResult& step);
/// The clock at which the step's cycles are times, MHz: that of the timing run, or the lower one at which the step was
/// counted. The higher of the two where more cycles are active than the step's kernels last at the timing run's: a
/// step's own clock may lie above the mean of a run at its power limit. A kernel of mma.sync alone took 9 % longer on
/// an H200 than the clock that NVML read allows, and as long as its own counted clock does (docs/results/truths.md).
/// Which of two clocks is right is not known of other kernels: the difference is part of their interval
/// (StepLedger::clock_error). 0: neither is known.
double step_clock_mhz(const StepResult& step, double run_clock_mhz);
/// Time in which an SM had a warp, mean over SMs, microseconds: cycles are counted in another run than the times, so
/// they are taken at step_clock_mhz().
std::optional<double> sm_active_us(const StepResult& step, double run_clock_mhz);

/// The same as a percentage of the time of the step's kernels, at most 100. Not the counter `smsp_active`, whose
/// denominator is the kernel's duration at another clock or, in steps of several kernels and in older results, a range
/// some 10 us longer than the kernels.
std::optional<double> sm_active_pct(const StepResult& step, double run_clock_mhz);

/// Multiplications and additions by tensor cores with inputs of `type`; nothing when they were not counted, and for
/// fp32, of which tensor cores take no inputs.
std::optional<double> tensor_flops(const StepResult& step, Precision type);

/// FLOPs outside tensor cores, an FMA being 2, from SASS thread instructions whose predicate was on. fp32 takes in the
/// packed instructions (two numbers each) of the chips that count them. fp16 and bf16 share HADD, HMUL and HFMA, which
/// are taken as packed pairs: both give the FLOPs of either type. Nothing when an instruction was not counted, and for
/// tf32, which exists on tensor cores only.
std::optional<double> plain_flops(const StepResult& step, Precision precision);

/// FLOPs by inputs of `precision`: fp16, bf16 and tf32 on tensor cores, fp32 on plain cores, fp64 on both. What plain
/// cores did in 16 bits is in none of them, as fp16 and bf16 cannot be told apart there.
std::optional<double> executed_flops(const StepResult& step, Precision precision);

/// All FLOPs, of tensor and plain cores; nothing when a part was not counted.
std::optional<double> executed_flops(const StepResult& step);

/// The counter that shows whether a step ran in the precision asked for: tensor-core operations with inputs of its
/// type; for fp32, which must have none, those of tf32, which reads the same operands.
std::string_view proof_counter(Precision asked);

/// Whether tensor cores multiplied matrices: yes by their operations, by tcgen05 instructions or by 5 % and more of
/// active cycles of the tensor pipe; no when all types of operations were counted as zero, when the pipe was idle, or
/// when it was below 5 % and the operations of the precision asked for (see proof_counter) were zero. Nothing
/// otherwise: a few active cycles are also what moves of constants take.
std::optional<bool> tensor_cores_used(const StepResult& step);

/// One line when the counters contradict the precision asked for, such as "asked for fp16, but ran on plain cores".
/// Nothing when they do not, or were not read; those that were read are judged alone.
std::optional<std::string> executed_mismatch(const StepResult& step);

}  // namespace kbench
