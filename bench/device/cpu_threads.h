// How many threads work on a CPU, and what decided it. Pure: the caller reads the machine.
//
// In this order: --threads; OMP_NUM_THREADS; a quota of CPU time, where it is below the cores; the cores. What
// OMP_THREAD_LIMIT allows is the most.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/cpu_quota.h"

namespace kbench {

/// What a process finds.
struct ThreadSurroundings {
    int asked = 0;            ///< by --threads; 0: not at all
    int cores = 1, cpus = 1;  ///< physical cores and logical CPUs that it may use
    std::optional<CpuQuota> quota = {};
    const char* omp_num_threads = nullptr;  ///< the variables' texts; null where they are not set
    const char* omp_dynamic = nullptr;
    /// Variables that OpenBLAS alone reads, such as {"OPENBLAS_NUM_THREADS", "4"}: a product takes as many as OpenMP.
    std::vector<std::pair<std::string, const char*>> of_blas = {};
    int thread_limit = 0x7fffffff;  ///< omp_get_thread_limit()
};

struct ThreadChoice {
    int threads = 1;
    std::string from;                   ///< HostInfo::threads_from
    std::vector<std::string> warnings;  ///< one line each
};

/// A quota of 2.5 CPUs makes 2 threads: more would use it up in a part of each period and stand still in the rest, so
/// that times would be of the quota's periods and not of the CPU. Under 1 CPU it is one thread, which stands still all
/// the same, and a warning. Throws UsageError where --threads asks for more than `cpus` or `thread_limit`.
ThreadChoice choose_threads(const ThreadSurroundings& found);

/// The first number of OMP_NUM_THREADS' list, "4,2" for two levels; nothing where it is not a list of numbers from 1.
std::optional<int> first_of_thread_list(const std::string& text);

}  // namespace kbench
