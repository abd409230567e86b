// Runs work on the caller alone or on OpenMP's threads, and measures how long the slowest of them takes.
#pragma once

#include <omp.h>

#include <algorithm>
#include <chrono>

namespace kbench::cpu {

/// Calls work(thread) on each of `threads` OpenMP threads at once. With one thread the caller does it without a team,
/// because OpenMP would end the other threads, and new ones would not be pinned.
template <class Work>
void on_threads(int threads, const Work& work) {
    if (threads == 1) {
        work(0);
        return;
    }
#pragma omp parallel num_threads(threads)
    work(omp_get_thread_num());
}

/// The same with a common start. Returns seconds from the first thread's start to the last one's end.
template <class Work>
double seconds_on_threads(int threads, const Work& work) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point first = Clock::time_point::max(), last = Clock::time_point::min();
    on_threads(threads, [&](int thread) {
        if (threads > 1) {
#pragma omp barrier
        }
        const Clock::time_point start = Clock::now();
        work(thread);
        const Clock::time_point end = Clock::now();
#pragma omp critical(kbench_seconds_on_threads)
        {
            first = std::min(first, start);
            last = std::max(last, end);
        }
    });
    return std::chrono::duration<double>(last - first).count();
}

}  // namespace kbench::cpu
