// Softmax with cross-entropy, one block per row, bound by memory. One pass over the row finds maximum and sum (online
// softmax, Milakov and Gimelshein, 2018) and leaves the row in shared memory for the gradient. While a block turns a
// part of its row into the gradient, it prefetches that part of its next row, so that DRAM reads overlap the
// arithmetic. Up to two rows of 100 KB are in flight per SM; 30 KB would cover DRAM's latency.
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "kernels/check.h"
#include "kernels/cp_async.cuh"
#include "kernels/cross_entropy.h"
#include "kernels/shared_memory.h"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int most_threads = 1024, warp = 32;
/// Vectors per thread in one part of a row: 32 KB with 512 threads.
constexpr int ahead = 4;

/// e^x for x <= 0 by ex2.approx, 2 ulp. One exponential per logit in both passes keeps the special function units busy
/// for two thirds of DRAM's time; anything slower than one instruction would bound the kernel.
__device__ inline float exponential(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896340736f));
    return y;
}
__device__ inline double exponential(double x) { return exp(x); }

/// A product that the compiler must not fuse with the addition after it, so that a sum has the same bits in all threads
/// of a warp, and in forward and gradient.
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double product(double a, double b) { return __dmul_rn(a, b); }

/// The larger of a maximum and a value. It ignores NaN, which then shows in the sum.
__device__ inline float larger(float maximum, float value) { return fmaxf(maximum, value); }
__device__ inline double larger(double maximum, double value) { return fmax(maximum, value); }

/// The largest element of a vector, or NaN where all are NaN. 16-bit elements are compared two at a time.
template <typename T, int N>
__device__ Arithmetic<T> largest_of(const Vector<T, N>& stored) {
    if constexpr (sizeof(T) == 2) {
        using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
        Pair pairs[N / 2];
        static_assert(sizeof pairs == sizeof stored);
        memcpy(pairs, stored.elements, sizeof pairs);
#pragma unroll
        for (int i = 1; i < N / 2; ++i) pairs[0] = __hmax2(pairs[0], pairs[i]);
        return larger(static_cast<float>(pairs[0].x), static_cast<float>(pairs[0].y));
    } else {
        Arithmetic<T> largest = stored.elements[0];
#pragma unroll
        for (int i = 1; i < N; ++i) largest = larger(largest, stored.elements[i]);
        return largest;
    }
}

/// Maximum of some logits, and the sum of their exponentials relative to it. The maximum starts as a finite number, so
/// that a logit of -infinity adds 0 to the sum.
template <typename A>
struct Online {
    A maximum = std::numeric_limits<A>::lowest(), sum = 0;

    /// Makes `largest` the maximum, if it is larger, before such logits are added.
    __device__ void raise(A largest) {
        if (!(largest > maximum)) return;
        sum = product(sum, exponential(maximum - largest));
        maximum = largest;
    }
    template <int N>
    __device__ void add(const A (&logits)[N]) {
#pragma unroll
        for (int i = 0; i < N; ++i) sum += exponential(logits[i] - maximum);
    }
    /// Combines the values of a warp's threads; all of them get the result.
    __device__ void combine_warp() {
        A largest = maximum;
#pragma unroll
        for (int distance = warp / 2; distance > 0; distance /= 2)
            largest = larger(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
        sum = product(sum, exponential(maximum - largest));
        maximum = largest;
#pragma unroll
        for (int distance = warp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    /// Combines the values of a block's threads with one barrier. Two calls in a row need different `scratch`; the call
    /// after may reuse it, because every warp has passed a barrier in between.
    __device__ void combine_block(A (&scratch)[2][warp]) {
        combine_warp();
        const unsigned lane = threadIdx.x % warp, warps = blockDim.x / warp;
        if (lane == 0) {
            scratch[0][threadIdx.x / warp] = maximum;
            scratch[1][threadIdx.x / warp] = sum;
        }
        __syncthreads();
        maximum = lane < warps ? scratch[0][lane] : std::numeric_limits<A>::lowest();
        sum = lane < warps ? scratch[1][lane] : A{0};
        combine_warp();
    }
};

/// Alignment at which a row's vectors start: a cache line. With it, 4096 rows of 50257 16-bit logits at any even
/// address take 225 us on an H200; aligned to 32 bytes they take 228, to 16 bytes 233.
constexpr int boundary = 128;
/// Upper bound for a row's elements outside its vectors, so that each gets a thread.
constexpr int least_threads = 96;
static_assert(boundary / 2 + 16 / 2 - 2 <= least_threads);

/// Splits a row of `vocab` elements into whole vectors from the first boundary on, and edge elements before and after
/// them, at most one per thread.
template <int N>
struct Split {
    int head, vectors, edges;
    std::int64_t behind;

    template <typename T>
    __device__ Split(const T* row, std::int64_t vocab) {
        const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(row) % boundary);
        head = static_cast<int>(min(static_cast<std::int64_t>((boundary - past) % boundary / sizeof(T)), vocab));
        vectors = static_cast<int>((vocab - head) / N);
        behind = head + std::int64_t{vectors} * N;
        edges = head + static_cast<int>(vocab - behind);
    }
    /// The column of edge element `i` < edges.
    __device__ std::int64_t column(int i) const { return i < head ? i : behind + (i - head); }
};

/// Writes zeros to columns [first, last) of a row.
template <typename T>
__device__ void clear(T* row, std::int64_t first, std::int64_t last) {
    constexpr int N = vector_width<T>;
    const Split<N> split(row + first, last - first);
    Vector<T, N> zeros;
#pragma unroll
    for (int i = 0; i < N; ++i) zeros.elements[i] = static_cast<T>(0.0f);
    T* begin = row + first;
    for (int i = static_cast<int>(threadIdx.x); i < split.vectors; i += static_cast<int>(blockDim.x))
        zeros.store_whole(begin + split.head + std::int64_t{i} * N);
    if (static_cast<int>(threadIdx.x) < split.edges)
        begin[split.column(static_cast<int>(threadIdx.x))] = zeros.elements[0];
}

/// Waits until at most `pending` (up to 3) of this thread's newest groups of copies are in flight.
__device__ inline void wait_for_all_but(int pending) {
    if (pending >= 3)
        cp_async_wait<3>();
    else if (pending == 2)
        cp_async_wait<2>();
    else if (pending == 1)
        cp_async_wait<1>();
    else
        cp_async_wait<0>();
}

/// Copies 16 bytes to shared memory, and loads 16 bytes from it, by a 32-bit address.
__device__ inline void copy_to_shared(unsigned to, const char* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}
template <typename T, int N>
__device__ Vector<T, N> load_shared(unsigned from) {
    uint4 bits;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "r"(from));
    Vector<T, N> vector;
    static_assert(sizeof vector == sizeof bits);
    memcpy(vector.elements, &bits, sizeof bits);
    return vector;
}

/// Starts to copy a thread's vectors of one part of a row: those `between` bytes apart from `first` on, below `bytes`.
__device__ __forceinline__ void copy_part(unsigned to, const char* from, int first, int between, int bytes) {
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
        const int at = first + j * between;
        if (at < bytes) copy_to_shared(to + static_cast<unsigned>(at), from + at);
    }
    cp_async_commit();
}

/// Adds a thread's vectors of one part of a row to its maximum and sum; `inside` tells which of them the row has.
template <typename T, typename Inside>
__device__ __forceinline__ void add_part(Online<Arithmetic<T>>& online,
                                         const Vector<T, vector_width<T>> (&stored)[ahead], Inside inside) {
    Arithmetic<T> largest = online.maximum;
#pragma unroll
    for (int j = 0; j < ahead; ++j)
        if (inside(j)) largest = larger(largest, largest_of(stored[j]));
    online.raise(largest);
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
        if (!inside(j)) continue;
        Arithmetic<T> values[vector_width<T>];
        widen(stored[j], values);
        online.add(values);
    }
}

/// Turns a thread's vectors of one part of a row into the gradient's terms that do not depend on the target. Offsets
/// are as in copy_part, and `load` reads the vector at one.
template <typename T, typename Load>
__device__ __forceinline__ void write_gradient(char* begin, int first, int between, int bytes, const Load& load,
                                               Arithmetic<T> maximum, Arithmetic<T> times) {
    constexpr int N = vector_width<T>;
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
        const int at = first + j * between;
        if (at >= bytes) continue;
        Vector<T, N> stored = load(at);
        Arithmetic<T> values[N];
        widen(stored, values);
#pragma unroll
        for (int k = 0; k < N; ++k) stored.elements[k] = static_cast<T>(exponential(values[k] - maximum) * times);
        stored.store_whole(reinterpret_cast<T*>(begin + at));
    }
}

/// Writes zeros as the losses of the sequences' last rows, which have no next token, and as their gradient.
template <bool gradient, typename T, typename A>
__device__ __forceinline__ void clear_last_rows(T* logits, A* losses, int rows, int seq, std::int64_t stride) {
    const int thread = static_cast<int>(threadIdx.x), step = static_cast<int>(gridDim.x);
    for (std::int64_t last = (std::int64_t{blockIdx.x} + 1) * seq - 1; last < rows; last += std::int64_t{step} * seq) {
        if (thread == 0) losses[last] = 0;
        if constexpr (gradient) clear(logits + last * stride, 0, stride);
    }
}

/// `kept`: dynamic shared memory holds the row's vectors, each read by the thread that copied it; otherwise the
/// gradient reads them again from memory. Rows go to blocks in turn, the last first: the kernel that wrote the logits
/// left their last rows in L2, and the reader of the gradient finds its first rows there.
template <typename T, bool gradient, bool kept>
__global__ void __launch_bounds__(most_threads)
    cross_entropy_kernel(std::conditional_t<gradient, T*, const T*> logits, const std::int32_t* __restrict__ tokens,
                         const Arithmetic<T>* __restrict__ loss_scale, Arithmetic<T>* __restrict__ losses, int rows,
                         int seq, std::int64_t vocab, std::int64_t stride, std::int64_t targets) {
    using A = Arithmetic<T>;
    constexpr int N = vector_width<T>;
    using Stored = Vector<T, N>;
    using Byte = std::conditional_t<gradient, char, const char>;
    extern __shared__ uint4 row_in_smem[];
    __shared__ A scratch[2][2][warp];
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int step = static_cast<int>(gridDim.x);
    // Rows are counted without each sequence's last, which has no next token and little work. Of 4 x 1024 rows each
    // of 132 SMs then gets 31; otherwise some would get 32.
    const auto row_of = [&](int target) { return target + target / (seq - 1); };

    // A thread's vectors lie `between` bytes apart, in the row and in shared memory. The first is at `begin`, the
    // others at offsets below `bytes`.
    struct Own {
        Byte* begin;
        int bytes;
    };
    const auto own_of = [&](auto* line, const Split<N>& split) {
        Own own{reinterpret_cast<Byte*>(line + split.head) + thread * 16, (split.vectors - thread) * 16};
        asm volatile("" : "+l"(own.begin));  // keeps it in a register; otherwise it is computed again for each vector
        return own;
    };
    const int between = threads * 16, part_bytes = ahead * between;
    const int parts = static_cast<int>((vocab / N * 16 + part_bytes - 1) / part_bytes);
    unsigned smem = static_cast<unsigned>(__cvta_generic_to_shared(row_in_smem)) + threadIdx.x * 16;
    asm volatile("" : "+r"(smem));  // the same
    // Copies a part of a row over the place from which the thread has read that part of the row before.
    const auto fetch = [&](const Own& own, int part) {
        copy_part(smem, own.begin, part * part_bytes, between, own.bytes);
    };
    const auto fetch_row = [&](int row) {
        auto* const line = logits + row * stride;
        const Own own = own_of(line, Split<N>(line, vocab));
        for (int part = 0; part < parts; ++part) fetch(own, part);
    };

    A scale = 0;
    if constexpr (gradient) scale = *loss_scale / static_cast<A>(targets);
    int left = static_cast<int>(targets) - 1 - static_cast<int>(blockIdx.x), odd = 0;
    int row = left >= 0 ? row_of(left) : 0;
    if constexpr (kept) {
        if (left >= 0) fetch_row(row);
    }
    std::int64_t target = left >= 0 ? tokens[row + 1] : 0;
    clear_last_rows<gradient>(logits, losses, rows, seq, stride);
    for (; left >= 0; left -= step) {
        auto* const line = logits + row * stride;
        const bool fetches = kept && left >= step;
        const int next = left >= step ? row_of(left - step) : row;
        const std::int64_t next_target = tokens[next + 1];
        const Split<N> split(line, vocab);
        const Own own = own_of(line, split);
        // Whether one of the thread's vectors holds the target; edge elements belong to no vector.
        const bool owns_target = gradient && target >= split.head && target < split.behind &&
                                 static_cast<int>((target - split.head) / N) % threads == thread;
        // Both are read before the barrier that precedes every write.
        A at_target = 0, edge[1] = {};
        if (thread == 0 || owns_target) at_target = static_cast<A>(line[target]);
        if (thread < split.edges) edge[0] = static_cast<A>(line[split.column(thread)]);
        const auto load = [&](int at) {
            if constexpr (kept) return load_shared<T, N>(smem + static_cast<unsigned>(at));
            return Stored::load_once(reinterpret_cast<const T*>(own.begin + at));
        };

        Online<A> online;
        for (int part = 0; part < parts; ++part) {
            if constexpr (kept) wait_for_all_but(parts - 1 - part);
            Stored stored[ahead];
            const auto inside = [&](int j) { return part * part_bytes + j * between < own.bytes; };
#pragma unroll
            for (int j = 0; j < ahead; ++j)
                if (inside(j)) stored[j] = load(part * part_bytes + j * between);
            add_part<T>(online, stored, inside);
        }
        if (thread < split.edges) {
            online.raise(edge[0]);
            online.add(edge);
        }
        online.combine_block(scratch[odd]);
        odd ^= 1;
        const A maximum = online.maximum, sum = online.sum;
        if (thread == 0) losses[row] = log(sum) + (maximum - at_target);

        if constexpr (gradient) {
            const A times = scale / sum;
            auto* const next_line = logits + next * stride;
            const Own next_own = own_of(next_line, Split<N>(next_line, vocab));
            for (int part = 0; part < parts; ++part) {
                write_gradient<T>(own.begin, part * part_bytes, between, own.bytes, load, maximum, times);
                if (fetches) fetch(next_own, part);
            }
            // after its vector, by the same thread
            if (owns_target)
                Vector<T, 1>{{static_cast<T>(exponential(at_target - maximum) * times - scale)}}.store_whole(line +
                                                                                                             target);
            if (thread < split.edges) {
                const std::int64_t column = split.column(thread);
                const A p = exponential(edge[0] - maximum) * times;
                line[column] = static_cast<T>(column == target ? p - scale : p);
            }
            clear(line, vocab, stride);
        }
        row = next;
        target = next_target;
    }
}

/// Dynamic shared memory that a row may take on this device: in all, and where two blocks are to share an SM.
/// blocks shall share an SM.
struct SharedMemory {
    std::int64_t of_block, of_two;

    SharedMemory() {
        constexpr int reserved = 1024 + 1024;  // 1 KB per block is the system's; scratch takes less than another
        of_block = shared_bytes_of_block() - reserved / 2;
        of_two = shared_bytes_of_multiprocessor() / 2 - reserved;
    }
};

/// Threads per row: all that keep DRAM busy, where a row in shared memory leaves no room for a second block. Forward
/// uses as many as the gradient, so that losses have the same bits.
template <typename T>
unsigned threads_for(std::int64_t vocab, const SharedMemory& limit) {
    const std::int64_t vectors = divide_up(vocab, vector_width<T>), bytes = vectors * 16;
    const bool alone = bytes > limit.of_two && bytes <= limit.of_block;
    return static_cast<unsigned>(
        std::clamp<std::int64_t>(divide_up(vectors, warp) * warp, least_threads, alone ? most_threads : 512));
}

/// As many blocks as the device runs at once where each handles several rows; otherwise one per row.
template <typename Kernel>
std::int64_t blocks_for(Kernel* kernel, std::int64_t rows, unsigned threads, std::size_t smem) {
    int device = 0, sms = 0, each = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    KBENCH_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, static_cast<int>(threads), smem));
    return std::clamp<std::int64_t>(std::int64_t{each} * sms, 1, rows);
}

}  // namespace

void cross_entropy_forward(DataType type, const CrossEntropy& op, Stride<"logits"> stride, In<"logits"> logits,
                           In<"tokens", std::int32_t> tokens, Out<"losses"> losses, cudaStream_t stream) {
    const SharedMemory limit;
    dispatch(type, [&]<typename T>() {
        cross_entropy_kernel<T, false, false>
            <<<static_cast<unsigned>(op.targets()), threads_for<T>(op.vocab, limit), 0, stream>>>(
                logits, tokens, nullptr, losses, static_cast<int>(op.rows), static_cast<int>(op.seq), op.vocab, stride,
                op.targets());
    });
    KBENCH_CUDA_LAUNCHED("cross_entropy_kernel");
}

void cross_entropy_gradient(DataType type, const CrossEntropy& op, Stride<"logits"> stride, Out<"logits"> logits,
                            In<"tokens", std::int32_t> tokens, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                            cudaStream_t stream) {
    const SharedMemory limit;
    dispatch(type, [&]<typename T>() {
        const std::int64_t bytes = divide_up(op.vocab, vector_width<T>) * 16;
        const unsigned threads = threads_for<T>(op.vocab, limit);
        const auto launch = [&](auto* kernel, std::int64_t blocks, std::size_t smem) {
            kernel<<<static_cast<unsigned>(blocks), threads, smem, stream>>>(
                logits, tokens, loss_scale, losses, static_cast<int>(op.rows), static_cast<int>(op.seq), op.vocab,
                stride, op.targets());
        };
        if (bytes > limit.of_block) return launch(&cross_entropy_kernel<T, true, false>, op.targets(), 0);
        auto* const kernel = &cross_entropy_kernel<T, true, true>;
        // The limit does not depend on the row, because two threads may launch rows of different lengths at once.
        KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(limit.of_block)));
        const auto smem = static_cast<std::size_t>(bytes);
        launch(kernel, blocks_for(kernel, op.targets(), threads, smem), smem);
    });
    KBENCH_CUDA_LAUNCHED("cross_entropy_kernel");
}

}  // namespace kbench::cuda
