// Threads on CPUs that this process may use, pinned: usually one for each physical core.
#pragma once

#include <string>
#include <vector>

namespace kbench::cpu {

/// What the process may use: logical CPUs in its affinity mask, one for each physical core, in order.
/// Read from /sys/devices/system/cpu/*/topology; where that is missing every allowed CPU counts as a core. Ask before
/// pin_threads, which leaves the calling thread, and all that it starts later, one CPU; cpu_info likewise.
std::vector<int> physical_cores();

/// All of them: one of each core as above, then the others of the same cores. The first n are where n threads go.
std::vector<int> usable_cpus();

/// Starts OpenMP threads and returns how many came: OMP_THREAD_LIMIT may allow fewer than `wanted`. Kernels and
/// libraries find that number in omp_get_max_threads: oneDNN and OpenBLAS leave the share of a missing thread undone.
int start_threads(int wanted);

/// Pins OpenMP thread i to cpus[i]; the number of OpenMP threads is then cpus.size(). Returns false when fewer came
/// or the system refuses (threads then float; the caller reports it).
bool pin_threads(const std::vector<int>& cpus);

/// CPU facts for the result: model name, sockets, cores, threads a core, caches in bytes, governor if known.
struct CpuInfo {
    std::string model;
    int sockets = 0, physical_cores = 0, logical_cpus = 0;  ///< that the process may use
    int machine_cpus = 0;                                   ///< logical ones that are online, whoever may use them
    long l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;         ///< of one core; l3 of one instance
    int l3_instances = 1;                                   ///< that the allowed CPUs share
    std::vector<std::string> isa;  ///< of avx2, avx512f, avx512_bf16, avx512_fp16, amx_tile, amx_bf16
    std::string governor;
};
/// Read once, at the first call: call it before pin_threads, which narrows the calling thread's own mask.
const CpuInfo& cpu_info();

}  // namespace kbench::cpu
