// When and where something happens, as lines say it.
#pragma once

#include <cupti.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace kbench::attach {

/// CUPTI's clock, which kernels' records have, too.
inline std::uint64_t now_ns() {
    std::uint64_t now = 0;
    cuptiGetTimestamp(&now);
    return now;
}

/// The system's number of this process, asked for once and in each that is forked: getpid() is a call of the system,
/// and this is needed several times a launch.
inline long this_process() {
    static std::atomic<long> number = [] {
        pthread_atfork(nullptr, nullptr, [] { number = getpid(); });
        return static_cast<long>(getpid());
    }();
    return number.load(std::memory_order_relaxed);
}

/// The system's number of this thread.
inline long this_thread() {
    static thread_local const long number = syscall(SYS_gettid);
    return number;
}

}  // namespace kbench::attach
