// What follows from the machine's state while samples were taken.
#pragma once

#include <span>
#include <vector>

#include "kbench/records.h"

namespace kbench {

/// `samples_ms`, which ended at `ended_s`, in at most 16 blocks of five or more, as many in each as can be, and the
/// mean of the clock's readings in each: what was read after a block's last sample belongs to the next one, what was
/// read before the first sample or after the last to none. Empty where no block has a reading of the clock, or there
/// would be but one block.
std::vector<ConditionBlock> condition_blocks(std::span<const double> samples_ms, std::span<const double> ended_s,
                                             std::span<const ConditionReading> readings);

/// Energy of `seconds` of work at the mean power of `conditions`. The device was busy for `busy_share` of the time that
/// this is the mean of: below 0.95 the energy is an estimate, too low by what the device draws less when it waits.
/// Estimated, too, where power is the mean of readings.
Quantity energy_of(const Conditions& conditions, double seconds, double busy_share);

}  // namespace kbench
