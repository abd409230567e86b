// When and where something happens, as lines say it.
#pragma once

#include <cupti.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace kbench::attach {

/// CUPTI's clock, which kernels' records have, too.
inline std::uint64_t now_ns() {
    std::uint64_t now = 0;
    cuptiGetTimestamp(&now);
    return now;
}

/// The system's number of this thread.
inline long this_thread() {
    static thread_local const long number = syscall(SYS_gettid);
    return number;
}

}  // namespace kbench::attach
