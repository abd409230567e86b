// Calls that launched something. They are kept until a thread of CUPTI's writes them, as the program's own would lose
// time with it.
#pragma once

#include <cstdint>

namespace kbench::attach {

struct LaunchCall {
    std::uint64_t index = 0;  ///< among all of the process
    std::uint32_t correlation = 0;
    const char* function = nullptr;  ///< lives as long as the process
    long thread = 0;
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint32_t range = 0;
    const char* inner = nullptr;  ///< a launch call of the driver that it made; nullptr without one
};

void keep(const LaunchCall& call);
void write_kept_launches();

}  // namespace kbench::attach
