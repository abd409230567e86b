// The truths by what they are about, each list in the file of its name.
#pragma once

#include <vector>

#include "tests/truths/truth.h"

namespace kbench {

std::vector<Truth> memory_truths();    ///< DRAM, L2, waiting for them
std::vector<Truth> unit_truths();      ///< pipes of an SM and its shared memory
std::vector<Truth> schedule_truths();  ///< SMs without warps, launches, gaps
std::vector<Truth> claim_truths();     ///< work that is not what it claims to be, and what cannot be told
std::vector<Truth> cause_truths();     ///< known milliseconds by cause
std::vector<Truth> theft_truths();     ///< bandwidth taken away by a thief
std::vector<Truth> cpu_truths();

}  // namespace kbench
