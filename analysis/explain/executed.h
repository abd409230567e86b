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

/// FLOPs that a step's products cannot do without, whatever tiles its kernels compute: what is useful of them, less
/// what the algorithm spares, less the first of several time steps, which may multiply a state of zeros. Nothing for a
/// step without products, and where a library may choose an algorithm with fewer and does not say so.
std::optional<double> least_product_flops(const StepResult& step);

/// One line when the counters contradict the precision asked for, such as "asked for fp16, but ran on plain cores".
/// Nothing when they do not, or were not read; those that were read are judged alone.
std::optional<std::string> executed_mismatch(const StepResult& step);

/// Whether counters prove that a step's products ran in the precision asked for: as many FLOPs of its type as its
/// products need, and nothing that contradicts. For fp32 that tensor cores did nothing is enough, as plain cores are
/// not counted by default; where they were, they must have done so many. Nothing for a step without products, and where
/// what decides was not counted.
std::optional<bool> products_proven(const StepResult& step);

}  // namespace kbench
