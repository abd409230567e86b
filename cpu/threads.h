// Threads on the CPUs that this process may use, pinned, usually one per physical core.
#pragma once

#include <string>
#include <vector>

namespace kbench::cpu {

/// One logical CPU for each physical core in the process's affinity mask, in order.
/// Read from /sys/devices/system/cpu/*/topology; where that is missing every allowed CPU counts as a core. In a thread
/// that pin_threads keeps on one CPU they are those that it was allowed before.
std::vector<int> physical_cores();

/// All allowed CPUs: one of each core as above, then the others of the same cores. n threads use the first n.
std::vector<int> usable_cpus();

/// Starts OpenMP threads and returns how many came: OMP_THREAD_LIMIT may allow fewer than `wanted`. Kernels and
/// libraries read that number from omp_get_max_threads: oneDNN and OpenBLAS leave a missing thread's share undone.
int start_threads(int wanted);

/// Pins OpenMP thread i to cpus[i]; the number of OpenMP threads is then cpus.size(). The calling thread is the first
/// of them, and threads and processes that it starts later begin on its CPU. Returns false when fewer came or the
/// system refuses; threads then float, and the caller reports it.
bool pin_threads(const std::vector<int>& cpus);

/// Keeps the calling thread on one CPU. Returns false where the system refuses.
bool pin_this_thread(int cpu);

/// CPU facts for the result: model name, sockets, cores, threads per core, caches in bytes, governor if known.
struct CpuInfo {
    std::string model;
    int sockets = 0, physical_cores = 0, logical_cpus = 0;  ///< those that the process may use
    int machine_cpus = 0;                                   ///< logical CPUs that are online, whoever may use them
    long l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;         ///< per core; l3 per instance
    int l3_instances = 1;                                   ///< L3 caches that the allowed CPUs share
    std::vector<std::string> isa;  ///< those of avx2, avx512f, avx512_bf16, avx512_fp16, amx_tile, amx_bf16
    std::string governor;
};
/// Read once, on the first call.
const CpuInfo& cpu_info();

}  // namespace kbench::cpu
