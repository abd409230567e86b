// Whether a step executed what was asked for, by its hardware counters. Kernels' names are not looked at: they promise,
// counters tell.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/executed_flops.h"
#include "kbench/result.h"

namespace kbench {

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
