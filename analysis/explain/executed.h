// Whether a step executed what was asked for, by its hardware counters. Kernels' names are not looked at: they promise,
// counters tell.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/executed_flops.h"
#include "kbench/result.h"

namespace kbench {

/// Schedulers of an SM, since Volta: each issues an instruction a cycle.
inline constexpr double schedulers = 4;

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

/// Whose operations by tensor cores show whether a step ran in the precision asked for: its own; for fp32, which must
/// have none, those of tf32, which reads the same operands.
Precision proof_type(Precision asked);

/// Whether tensor cores multiplied matrices: yes by their operations, by tcgen05 instructions or by 5 % and more of
/// active cycles of the tensor pipe; no when all types of operations were counted as zero, when the pipe was idle, or
/// when it was below 5 % and the operations of the precision asked for (see proof_type) were zero. Nothing
/// otherwise: a few active cycles are also what moves of constants take.
std::optional<bool> tensor_cores_used(const StepResult& step);

/// One line when the counters contradict the precision asked for, such as "asked for fp16, but ran on plain cores".
/// Nothing when they do not, or were not read; those that were read are judged alone.
std::optional<std::string> executed_mismatch(const StepResult& step);

}  // namespace kbench
