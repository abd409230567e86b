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

/// How often a block tells what it has done and asks whether to stop: each is a round trip to L2.
constexpr std::uint64_t tell_ns = 50'000;
/// A block that fell behind its pace makes up for no more than this: what it did not get while the work beside it was
/// busy must not be taken from what comes after.
constexpr double most_behind_ns = 20'000;
/// What a block that takes nothing waits between two looks at the clock.
constexpr double idle_ns = 20'000;
/// Waits are of this length at most, so that a block is back when the clock has come so far.
constexpr unsigned nap_ns = 200;

/// Chunks that a block reads of L2 between two looks at the clock, each word as soon as its place is free: with a look
/// behind every chunk nothing would be in flight meanwhile.
constexpr int l2_chunks = 8;

constexpr int fma_chains = 4, fma_rounds = 512;

/// Lines of a stream are the first that L2 gives up, so that little of the data of the work beside it must go.
__device__ std::uint64_t first_to_go() {
    std::uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ uint4 take_from_dram(const uint4* address, std::uint64_t policy) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address), "l"(policy));
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
    __device__ explicit Pace(std::uint64_t deadline_ns) : begin_(now_ns()), told_(begin_), deadline_ns_(deadline_ns) {}

    /// After so many chunks: waits, tells, takes its next order, and gives whether to end.
    __device__ bool ends(int chunks, std::uint64_t bytes, const volatile unsigned* stop,
                         const volatile ThiefOrder* next, ThiefOrder& order, ThiefCount* count) {
        std::uint64_t ns = now_ns() - begin_;
        due_ns_ = fmax(due_ns_ + chunks * order.ns_per_chunk, static_cast<double>(ns) - most_behind_ns);
        while (static_cast<double>(ns) < due_ns_ && ns < deadline_ns_) {
            __nanosleep(nap_ns);
            ns = now_ns() - begin_;
        }
        const bool is_late = ns >= deadline_ns_;
        if (!is_late && begin_ + ns - told_ < tell_ns) return false;
        told_ = begin_ + ns;
        *reinterpret_cast<ulonglong2*>(count) = make_ulonglong2(bytes, ns);
        if (next != nullptr) {
            order.theft = next->theft;
            order.chunks = next->chunks;
            order.ns_per_chunk = next->ns_per_chunk;
        }
        return is_late || *stop != 0;
    }

  private:
    std::uint64_t begin_, told_;
    double due_ns_ = 0;
    std::uint64_t deadline_ns_;
};

/// Where a thread's first word of its block's next chunk lies: `chunk`, which moves on by a grid.
__device__ const uint4* next_chunk(const uint4* data, unsigned& chunk, unsigned chunks) {
    const std::size_t now = chunk % chunks;
    chunk = static_cast<unsigned>(now) + gridDim.x;
    return data + now * (threads * loads) + threadIdx.x;
}

__global__ __launch_bounds__(threads, 1) void thief_kernel(const uint4* data, ThiefOrder first,
                                                           std::uint64_t deadline_ns, const volatile unsigned* stop,
                                                           const volatile ThiefOrder* next, ThiefCount* counts,
                                                           std::uint32_t* sums) {
    __shared__ ThiefOrder order;
    if (threadIdx.x == 0) order = first;
    __syncthreads();
    Pace pace(deadline_ns);
    std::uint32_t sum = threadIdx.x;
    std::uint64_t bytes = 0;
    unsigned chunk = blockIdx.x;
    const std::uint64_t policy = first_to_go();
    bool ends = false;
    do {
        // The clock is looked at between the loads and the first use of what they bring: so all of them are in flight
        // meanwhile. Used at once, the assembler had three in flight, to save registers.
        uint4 v[loads] = {};
        const auto theft = static_cast<Theft>(order.theft);
        int read = 1;
        if (theft == Theft::compute) {
            compute(sum);
        } else if (theft == Theft::dram) {
            const uint4* mine = next_chunk(data, chunk, order.chunks);
#pragma unroll
            for (int i = 0; i < loads; ++i) v[i] = take_from_dram(mine + i * threads, policy);
        } else if (theft == Theft::l2) {
            for (read = 0; read < l2_chunks; ++read) {
                const uint4* mine = next_chunk(data, chunk, order.chunks);
#pragma unroll
                for (int i = 0; i < loads; ++i) {
                    sum += total(v[i]);
                    v[i] = load_l2(mine + i * threads);
                }
            }
        }
        if (theft == Theft::dram || theft == Theft::l2) bytes += read * thief_chunk_bytes;
        __syncthreads();  // all have read the order
        if (threadIdx.x == 0) ends = pace.ends(read, bytes, stop, next, order, counts + blockIdx.x);
        ends = __syncthreads_or(ends);
#pragma unroll
        for (int i = 0; i < loads; ++i) sum += total(v[i]);
    } while (!ends);
    add_block_sum<threads>(sum, sums);
}

bool is_reading(Theft theft) { return theft == Theft::dram || theft == Theft::l2; }

int attribute_here(cudaDeviceAttr attribute) {
    int device = 0, value = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

/// What a block asks for of shared memory. Where its registers are all that an SM has, nothing: what shared memory
/// takes is not L1's, and what is in flight needs a place there. With all shared memory taken, an SM of an H100 got
/// half of what it gets without, of L2's bandwidth and of DRAM's.
int shared_bytes(const cudaFuncAttributes& attributes) {
    constexpr int registers_at_once = 8;  // are allocated to a thread
    const int registers = (attributes.numRegs + registers_at_once - 1) / registers_at_once * registers_at_once;
    if (registers * threads >= attribute_here(cudaDevAttrMaxRegistersPerMultiprocessor)) return 0;
    return attribute_here(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(attributes.sharedSizeBytes);
}

void check_task(const ThiefTask& task) {
    if (task.blocks <= 0) throw UsageError("a thief has blocks, not " + std::to_string(task.blocks));
    if (task.deadline_ns <= 0 || task.deadline_ns > longest_theft_ns)
        throw UsageError("a thief ends after at most " + std::to_string(longest_theft_ns) + " ns, not " +
                         std::to_string(task.deadline_ns));
    if (is_reading(task.theft) && (task.bytes < thief_chunk_bytes || task.bytes % thief_chunk_bytes != 0))
        throw UsageError("a thief takes multiples of " + std::to_string(thief_chunk_bytes) + " bytes, not " +
                         std::to_string(task.bytes));
}

}  // namespace

void load_thief() {
    cudaFuncAttributes attributes{};
    KBENCH_CUDA(cudaFuncGetAttributes(&attributes, thief_kernel));
    KBENCH_CUDA(
        cudaFuncSetAttribute(thief_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes(attributes)));
}

ThiefOrder order_of(Theft theft, std::int64_t bytes, double bytes_per_ns, int blocks) {
    ThiefOrder order{.theft = static_cast<unsigned>(theft),
                     .chunks = static_cast<unsigned>(bytes / thief_chunk_bytes),
                     .ns_per_chunk = idle_ns};
    if (theft == Theft::compute) order.ns_per_chunk = 0;
    if (is_reading(theft))
        order.ns_per_chunk = bytes_per_ns > 0 ? static_cast<double>(thief_chunk_bytes) * blocks / bytes_per_ns : 0;
    return order;
}

void run_thief(const ThiefTask& task, cudaStream_t stream) {
    check_task(task);
    cudaFuncAttributes attributes{};
    KBENCH_CUDA(cudaFuncGetAttributes(&attributes, thief_kernel));
    thief_kernel<<<static_cast<unsigned>(task.blocks), threads, static_cast<std::size_t>(shared_bytes(attributes)),
                   stream>>>(
        static_cast<const uint4*>(task.data), order_of(task.theft, task.bytes, task.bytes_per_ns, task.blocks),
        static_cast<std::uint64_t>(task.deadline_ns), task.stop, task.order, task.counts, task.sums);
    KBENCH_CUDA_LAUNCHED("thief_kernel");
}

}  // namespace kbench::cuda::probe
