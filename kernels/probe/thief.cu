// Blocks that move a chunk, look at the clock and wait until their share of the pace allows the next.
#include <string>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/thief.h"

namespace kbench::cuda::probe {
namespace {

constexpr int threads = thief_threads, loads = thief_loads;
static_assert(thief_sums == sum_slots);

/// How often a block tells what it has done and asks whether to stop: each is a round trip to the host of 1 to 2 us.
constexpr std::uint64_t tell_ns = 50'000;
/// A block that fell behind its pace makes up for no more than this: what it did not get while the work beside it was
/// busy must not be taken from what comes after.
constexpr double most_behind_ns = 20'000;
/// Waits are of this length at most, so that a block is back when the clock has come so far.
constexpr unsigned nap_ns = 200;

constexpr int fma_chains = 4, fma_rounds = 512;

__device__ std::uint64_t global_ns() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/// Lines of a stream are the first that L2 gives up, so that little of the data of the work beside it must go.
__device__ std::uint64_t first_to_go() {
    std::uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

template <Theft theft>
__device__ uint4 take(const uint4* address, [[maybe_unused]] std::uint64_t policy) {
    uint4 v;
    if constexpr (theft == Theft::dram)
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(address), "l"(policy));
    else
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(address));
    return v;
}

/// Some microseconds of FMAs in registers.
__device__ void compute(std::uint32_t& sum) {
    float chain[fma_chains];
#pragma unroll
    for (int c = 0; c < fma_chains; ++c) chain[c] = static_cast<float>((sum + c) % 1024);
#pragma unroll 4
    for (int round = 0; round < fma_rounds; ++round)
#pragma unroll
        for (int c = 0; c < fma_chains; ++c) chain[c] = fmaf(chain[c], -1.0f + 0x1p-17f, 0.5f);
#pragma unroll
    for (int c = 0; c < fma_chains; ++c) sum += __float_as_uint(chain[c]);
}

/// When a block is to end, and until when it must wait: kept by its first thread.
class Pace {
  public:
    __device__ Pace(double ns_per_chunk, std::uint64_t deadline_ns)
        : begin_(global_ns()), told_(begin_), ns_per_chunk_(ns_per_chunk), deadline_ns_(deadline_ns) {}

    /// After a chunk: waits, tells, and gives whether to end.
    __device__ bool ends(std::uint64_t bytes, const volatile unsigned* stop, ThiefCount* count) {
        std::uint64_t ns = global_ns() - begin_;
        due_ns_ = fmax(due_ns_ + ns_per_chunk_, static_cast<double>(ns) - most_behind_ns);
        while (static_cast<double>(ns) < due_ns_ && ns < deadline_ns_) {
            __nanosleep(nap_ns);
            ns = global_ns() - begin_;
        }
        const bool is_late = ns >= deadline_ns_;
        if (!is_late && begin_ + ns - told_ < tell_ns) return false;
        told_ = begin_ + ns;
        *reinterpret_cast<ulonglong2*>(count) = make_ulonglong2(bytes, ns);
        return is_late || *stop != 0;
    }

  private:
    std::uint64_t begin_, told_;
    double ns_per_chunk_, due_ns_ = 0;
    std::uint64_t deadline_ns_;
};

template <Theft theft>
__global__ __launch_bounds__(threads) void thief_kernel(const uint4* data, unsigned chunks, double ns_per_chunk,
                                                        std::uint64_t deadline_ns, const volatile unsigned* stop,
                                                        ThiefCount* counts, std::uint32_t* sums) {
    Pace pace(ns_per_chunk, deadline_ns);
    std::uint32_t sum = threadIdx.x;
    std::uint64_t bytes = 0;
    unsigned chunk = theft == Theft::compute ? 0 : blockIdx.x % chunks;
    const unsigned stride = theft == Theft::compute ? 0 : gridDim.x % chunks;
    std::uint64_t policy = 0;
    if constexpr (theft == Theft::dram) policy = first_to_go();
    bool ends = false;
    do {
        // The clock is looked at between the loads and the first use of what they bring: so all of them are in flight
        // meanwhile. Used at once, the assembler had three in flight, to save registers.
        uint4 v[loads] = {};
        if constexpr (theft == Theft::compute) {
            compute(sum);
        } else {
            const uint4* mine = data + std::size_t{chunk} * (threads * loads) + threadIdx.x;
#pragma unroll
            for (int i = 0; i < loads; ++i) v[i] = take<theft>(mine + i * threads, policy);
            chunk += stride;
            if (chunk >= chunks) chunk -= chunks;
            bytes += thief_chunk_bytes;
        }
        if (threadIdx.x == 0) ends = pace.ends(bytes, stop, counts + blockIdx.x);
        ends = __syncthreads_or(ends);
        if constexpr (theft != Theft::compute)
#pragma unroll
            for (int i = 0; i < loads; ++i) sum += total(v[i]);
    } while (!ends);
    add_block_sum<threads>(sum, sums);
}

using Kernel = void (*)(const uint4*, unsigned, double, std::uint64_t, const volatile unsigned*, ThiefCount*,
                        std::uint32_t*);
constexpr Kernel kernels[] = {thief_kernel<Theft::compute>, thief_kernel<Theft::dram>, thief_kernel<Theft::l2>};

void check_task(const ThiefTask& task) {
    if (task.blocks <= 0) throw UsageError("a thief has blocks, not " + std::to_string(task.blocks));
    if (task.deadline_ns <= 0 || task.deadline_ns > longest_theft_ns)
        throw UsageError("a thief ends after at most " + std::to_string(longest_theft_ns) + " ns, not " +
                         std::to_string(task.deadline_ns));
    if (task.theft != Theft::compute && (task.bytes < thief_chunk_bytes || task.bytes % thief_chunk_bytes != 0))
        throw UsageError("a thief takes multiples of " + std::to_string(thief_chunk_bytes) + " bytes, not " +
                         std::to_string(task.bytes));
}

}  // namespace

void load_thief() {
    cudaFuncAttributes attributes{};
    for (const Kernel kernel : kernels) KBENCH_CUDA(cudaFuncGetAttributes(&attributes, kernel));
}

void run_thief(const ThiefTask& task, cudaStream_t stream) {
    check_task(task);
    const double ns_per_chunk =
        task.bytes_per_ns > 0 ? static_cast<double>(thief_chunk_bytes) * task.blocks / task.bytes_per_ns : 0;
    kernels[static_cast<int>(task.theft)]<<<static_cast<unsigned>(task.blocks), threads, 0, stream>>>(
        static_cast<const uint4*>(task.data), static_cast<unsigned>(task.bytes / thief_chunk_bytes), ns_per_chunk,
        static_cast<std::uint64_t>(task.deadline_ns), task.stop, task.counts, task.sums);
    KBENCH_CUDA_LAUNCHED("thief_kernel");
}

}  // namespace kbench::cuda::probe
