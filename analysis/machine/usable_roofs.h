// Ceilings of a GPU that are measured and yet no roofs, as other kernels may be faster. Pure.
#pragma once

#include <string>

#include "kbench/result.h"

namespace kbench {

struct MachineFile;

/// Why the tensor cores of `gpu` have no roof; empty where a probe reaches their fastest instruction.
std::string no_tensor_roof(const GpuInfo& gpu);

/// A probe that reaches less than this part of its datasheet's value does not use all of the unit. At the clock at
/// which it ran, one that does reaches 0.88 or more in all results of GPUs under results/; HFMA2 on one of two pipes
/// reached 0.50.
inline constexpr double least_of_datasheet = 0.55;

/// Makes those ceilings of `run` unavailable with the reason: tensor cores where no probe of ours uses their fastest
/// instruction, and what reached less than least_of_datasheet of its datasheet's value. `machine` is the GPU's
/// datasheet or null; without one all probes pass the latter.
void leave_out_unusable(CeilingRun& run, const GpuInfo& gpu, const MachineFile* machine);

/// The ceilings of `result` without those, whatever version measured them. A CPU's are as they are.
CeilingRun usable_ceilings(const Result& result);

}  // namespace kbench
