// A kernel that keeps some SMs for itself beside other work, and takes a paced share of what all SMs share: DRAM's
// bandwidth, L2's, or only power. It runs until it is told to stop, or until its deadline, so that nothing can hang.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda::probe {

/// nothing: it only keeps its SMs from the work beside it. compute: FMAs in registers, without pace. dram: reads of a
/// buffer far larger than L2. l2: reads of one that stays there. Both past L1.
enum class Theft { nothing, compute, dram, l2 };

/// A block has an SM to itself, by its registers or else by its shared memory: no other work finds room beside it. Work
/// on SMs of two green contexts took turns in time on an H100 (driver 580), 38 % of it each, and so cannot show what
/// bandwidth does. A block has 128 KiB in flight, with which an SM takes 64 GB/s even where a load waits for 2 us.
inline constexpr int thief_threads = 1024;
inline constexpr int thief_loads = 8;  ///< 16-byte loads of a thread in flight
/// Bytes that a block moves before it looks at the clock. Buffers are multiples of it.
inline constexpr std::int64_t thief_chunk_bytes = std::int64_t{thief_threads} * thief_loads * 16;
/// No deadline is later.
inline constexpr std::int64_t longest_theft_ns = 8'000'000'000;

/// What a block has done, as it last told: at least every 50 us.
struct alignas(16) ThiefCount {
    std::uint64_t bytes = 0;
    std::uint64_t ns = 0;  ///< since it began
};

/// Words of ThiefTask::sums.
inline constexpr unsigned thief_sums = 1024;

/// What a thief that runs is to do from now on. It looks there as often as it tells. Blocks that end and start again
/// land on other SMs, and what is left of a cluster's places then differs: so one thief does all.
struct ThiefOrder {
    unsigned theft = 0;
    unsigned chunks = 0;      ///< as many of the buffer are read, from its beginning
    double ns_per_chunk = 0;  ///< a block's pace; 0: as many as it can
};

/// All memory is the device's. While a kernel waits for what it reads of host memory, the kernels beside it do not end:
/// with `order` there, kernels of 5.5 us took 21 to 65 us on an H100 (results/h100-2026-11-26/thief.txt).
struct ThiefTask {
    Theft theft = Theft::compute;
    int blocks = 0;              ///< the SMs that it takes, which must be empty when it starts
    const void* data = nullptr;  ///< `bytes` of it, at least a chunk; not for nothing and compute
    std::int64_t bytes = 0;
    double bytes_per_ns = 0;            ///< by all blocks together; 0: as many as they can
    std::int64_t deadline_ns = 0;       ///< since each block began; at most longest_theft_ns
    const unsigned* stop = nullptr;     ///< not 0 ends the kernel within some 100 us
    const ThiefOrder* order = nullptr;  ///< overrides theft, bytes and pace; null: they stay
    ThiefCount* counts = nullptr;       ///< [blocks], zero before
    std::uint32_t* sums = nullptr;      ///< [thief_sums]: what was read, so that loads are not left out
};

/// Loads the kernels as their first launches would, which would wait for what runs beside them.
void load_thief();

/// The order that means the same as these parts of a task.
ThiefOrder order_of(Theft theft, std::int64_t bytes, double bytes_per_ns, int blocks);

/// Throws UsageError for a task outside of the limits above.
void run_thief(const ThiefTask& task, cudaStream_t stream);

}  // namespace kbench::cuda::probe
