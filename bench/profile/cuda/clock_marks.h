// Marks of the SMs' clocks on a GPU's stream.
#pragma once

#include <memory>

#include "bench/profile/clock_marks.h"

namespace kbench::cuda {

std::unique_ptr<ClockMarks> make_clock_marks(Device& device, int places, int launches);

}  // namespace kbench::cuda
