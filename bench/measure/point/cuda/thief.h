// The thief on a GPU's SMs.
#pragma once

#include <memory>

#include "bench/measure/point/thief.h"

namespace kbench::cuda {

std::unique_ptr<Thief> make_thief(Device& device, int multiprocessors);

}  // namespace kbench::cuda
