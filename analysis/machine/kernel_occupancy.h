// The occupancy of a recorded kernel: occupancy.h applied to the launch in its record. Pure arithmetic.
#pragma once

#include "kbench/result.h"

namespace kbench {

/// Fills theoretical_occupancy_pct, waves, lost_in_last_wave_pct, blocks_per_sm, limiters and occupancy_hint from the
/// kernel's launch and the limits of `gpu`'s architecture; whatever they held before is replaced. What cannot be known
/// is unavailable with its reason: all of it where the architecture is not in the calculator's table or where it takes
/// the launch for impossible, the waves alone for clusters of several blocks and without the number of SMs.
/// Named barriers are in no record, so they are taken not to limit.
void describe_occupancy(KernelResult& kernel, const GpuInfo& gpu);

}  // namespace kbench
