// Each distinct step of a plan against the reference, before anything is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/measure/point/step_operands.h"
#include "bench/plan/fuse.h"
#include "kbench/result.h"

namespace kbench {

/// One step to check: any step of the plan that stands for all that are equal.
struct VerifyTarget {
    const Step* step;
    const Computation* computation;
    std::string provider, layer;
};

/// Runs the step on `device` with seeded random operands and compares every output with the reference: whole where the
/// reference is cheap, else at 4096 elements or more chosen by `seed`; and every element of the output must have been
/// written. The host holds the operands that are read, and of the outputs a slab at a time. Throws MeasurementError
/// naming step, element, both values and the bound when an element exceeds it.
VerifiedStep verify_step(const VerifyTarget& target, Precision precision, Device& device, std::uint64_t seed);
/// The same with `operands` of that step and computation, which are as they were made.
VerifiedStep verify_step(const VerifyTarget& target, Precision precision, Device& device, const StepOperands& operands,
                         std::uint64_t seed);

}  // namespace kbench
