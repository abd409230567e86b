// From assigned steps to a plan that fits into memory, before anything of it is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/fuse.h"
#include "bench/plan/plan.h"
#include "kbench/result.h"

namespace kbench {

/// Memory on paper as the providers announce it, before any computation is made.
Layout estimate_layout(const Model& model, Precision precision, const std::vector<AssignedStep>& steps);

/// Bytes of `device` that a plan may take.
std::int64_t plannable_bytes(const Device& device);

/// Bytes of the device's memory that a point with such a plan takes: on a CPU the outputs of two forwards are also
/// kept, to be compared.
std::int64_t needed_bytes(const Model& model, const Layout& layout, const Device& device);

/// The plan of `point`, whose memory, steps and costs it fills in; `model` must outlive it. Throws Unsupported when it
/// does not fit into memory; `hint` then says what would fit into so many bytes.
Plan plan_point(const Model& model, std::vector<AssignedStep> steps, const Device& device, Point& point,
                const std::function<std::string(std::int64_t available)>& hint);

}  // namespace kbench
