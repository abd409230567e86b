// The fused attention kernels' view of their problem: which rows a block owns, how it reads tiles of q, k and v into
// shared memory, and how it is launched. Nothing here depends on how the products are computed.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <cstdint>
#include <numbers>
#include <type_traits>
#include <utility>

#include "kernels/attention/kernel.h"
#include "kernels/check.h"
#include "kernels/cp_async.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::attention {

inline constexpr int warp_size = 32;

/// Elements in 16 bytes, the widest access of a thread.
template <class T>
inline constexpr int vector_size = 16 / static_cast<int>(sizeof(T));

/// The type in which elements stored as T are computed.
template <class T>
using Scalar = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct Problem {
    const T* qkv;
    T* out;
    Scalar<T>* lse;           ///< null where the caller does not want it
    std::int64_t row_stride;  ///< elements between two rows of qkv
    int heads, seq, head_size;
    int query_tiles;  ///< per head
    int sms;
    /// scale * log2(e), so that exp becomes a power of two.
    Scalar<T> scale_log2;
    bool vectorised;  ///< rows of every head start at multiples of 16 bytes and consist of whole vectors
};

/// The rows that a block owns, and pointers to its head.
template <class T>
struct Work {
    const T *q, *k, *v;  ///< row 0 of the head
    T* out;
    std::int64_t out_stride;
    int first_row;
    int sequence;  ///< index among batch * heads, which is its row of lse
};

/// The block's rank when all are ordered by falling work. An idle GPU places blocks round by round over its SMs (seen
/// on an H200, except on 8 of 132 SMs). So every second round runs backwards: an SM with a heavy tile gets a light one
/// next. Compared with forward rounds only, 20 heads of 1024 rows take 5 % less in fp32, 1 % less in fp16, bf16
/// and fp64, and 7 % more in tf32.
__device__ inline int rank_of_block(int sms) {
    const int blocks = gridDim.x, round = blockIdx.x / sms, in_round = blockIdx.x % sms;
    const bool backwards = round % 2 == 1 && (round + 1) * sms <= blocks;
    return round * sms + (backwards ? sms - 1 - in_round : in_round);
}

/// Assigns heavy tiles first: causal tile t costs t + 1 key blocks.
template <int query_rows, class T>
__device__ Work<T> work_of_block(const Problem<T>& problem) {
    const int rank = rank_of_block(problem.sms);
    const int sequences = gridDim.x / problem.query_tiles;  // batch * heads
    const int tile = problem.query_tiles - 1 - rank / sequences;
    const int head = rank % sequences % problem.heads;
    const std::int64_t row = std::int64_t{rank % sequences / problem.heads} * problem.seq;
    const std::int64_t width = std::int64_t{problem.heads} * problem.head_size;
    const T* q = problem.qkv + row * problem.row_stride + head * problem.head_size;
    return {q,     q + width,         q + 2 * width,   problem.out + row * width + head * problem.head_size,
            width, tile * query_rows, rank % sequences};
}

/// Waits for the `threads` threads of a group (0 to 3) at a hardware barrier that __syncthreads does not use. Barrier
/// numbers are constants, because with a variable one the compiler reserves all 16.
template <int groups, int threads>
__device__ void group_barrier(int group) {
    if constexpr (threads == warp_size)
        __syncwarp();
    else if (groups == 1 || group == 0)
        asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
    else if (groups == 2 || group == 1)
        asm volatile("bar.sync 2, %0;" ::"n"(threads) : "memory");
    else if (group == 2)
        asm volatile("bar.sync 3, %0;" ::"n"(threads) : "memory");
    else
        asm volatile("bar.sync 4, %0;" ::"n"(threads) : "memory");
}

/// `count` neighbouring elements that are read or written in one access.
template <class T, int count>
struct alignas(sizeof(T) * count) Vector {
    T at[count];
    __device__ static Vector load(const T* from) { return *reinterpret_cast<const Vector*>(from); }
};

/// Starts to copy rows [first_row, first_row + rows) of a head to `smem`, by `threads` threads together. Everything
/// outside the head becomes zero, because a stale NaN would survive multiplication by a probability of 0. Each thread
/// keeps its columns, so that a copy costs two address additions and no division of its index. Wait for it with
/// cp_async_wait_all: wait_group would skip the copies of a group of warps that has q to copy but no keys.
/// `problem` needs row_stride, seq, head_size and vectorised.
template <int rows, int columns, int pitch, int threads, class T, class Problem>
__device__ void load_tile(T* smem, const T* head, int first_row, const Problem& problem, int thread) {
    if (problem.vectorised) {
        constexpr int vectors = columns / vector_size<T>, rows_at_once = threads / vectors;
        static_assert(rows_at_once >= 1);
        const int first = thread / vectors, column = thread % vectors * vector_size<T>;
        if (threads % vectors != 0 && first >= rows_at_once) return;
        const int valid_rows = column < problem.head_size ? problem.seq - first_row : 0;
        const T* source = head + (first_row + first) * problem.row_stride + column;
        T* target = smem + first * pitch + column;
#pragma unroll
        for (int step = 0; step < rows; step += rows_at_once) {
            if (rows % rows_at_once != 0 && step + first >= rows) break;
            cp_async_16(target, source, step + first < valid_rows ? 16 : 0);
            source += rows_at_once * problem.row_stride;
            target += rows_at_once * pitch;
        }
    } else {
        for (int index = thread; index < rows * columns; index += threads) {
            const int row = index / columns, column = index % columns;
            const bool valid = first_row + row < problem.seq && column < problem.head_size;
            smem[row * pitch + column] = valid ? head[(first_row + row) * problem.row_stride + column] : T(0.0f);
        }
    }
}

/// Stores `count` neighbouring elements that begin at `column` (a multiple of count) of a row of `out`, in one access
/// where the row's alignment allows it. `values` must be aligned for one access.
template <int count, class T, class Problem>
__device__ void store(T* row, int column, const T* values, const Problem& problem) {
    using Access = std::conditional_t<sizeof(T) * count == 16, uint4, unsigned>;
    static_assert(sizeof(Access) == sizeof(T) * count);
    if (problem.vectorised && column < problem.head_size) {
        *reinterpret_cast<Access*>(row + column) = *reinterpret_cast<const Access*>(values);
    } else {
#pragma unroll
        for (int i = 0; i < count; ++i)
            if (column + i < problem.head_size) row[column + i] = values[i];
    }
}

/// Allows `kernel` to use that much shared memory on this device. Returns the device's number of SMs.
template <auto kernel, int smem_bytes>
int prepare() {
    int device = 0, sms = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    static std::atomic<std::uint64_t> prepared_devices = 0;  // one bit per device; setting it twice does no harm
    const std::uint64_t bit = std::uint64_t{1} << device;
    if (!(prepared_devices.load() & bit)) {
        allow_shared_memory(kernel, smem_bytes);
        prepared_devices |= bit;
    }
    return sms;
}

/// scale * log2(e), or the largest number below it.
template <class Number>
Number scale_log2(double scale) {
    const double largest = std::is_same_v<Number, double> ? DBL_MAX : FLT_MAX;
    return static_cast<Number>(std::min(scale * std::numbers::log2e, largest));
}

/// Launches `kernel`, which takes a Problem<T>, with one block per tile and head. `Layout` has its tile, threads and
/// smem_bytes.
template <auto kernel, class T, class Layout>
void launch(const AttentionArguments& arguments, cudaStream_t stream) {
    const int sms = prepare<kernel, Layout::smem_bytes>();
    const std::int64_t query_tiles = (arguments.seq + Layout::tile.query_rows - 1) / Layout::tile.query_rows;
    Problem<T> problem{};
    problem.qkv = static_cast<const T*>(arguments.qkv);
    problem.out = static_cast<T*>(arguments.out);
    problem.lse = static_cast<Scalar<T>*>(arguments.lse);
    problem.row_stride = 3 * arguments.heads * arguments.head_size;
    problem.heads = static_cast<int>(arguments.heads);
    problem.seq = static_cast<int>(arguments.seq);
    problem.head_size = static_cast<int>(arguments.head_size);
    problem.query_tiles = static_cast<int>(query_tiles);
    problem.sms = sms;
    problem.scale_log2 = scale_log2<Scalar<T>>(arguments.scale);
    problem.vectorised = arguments.head_size % vector_size<T> == 0;
    const auto blocks = static_cast<unsigned>(query_tiles * arguments.batch * arguments.heads);
    kernel<<<blocks, Layout::threads, Layout::smem_bytes, stream>>>(problem);
    KBENCH_CUDA_LAUNCHED("attention_forward");
}

}  // namespace kbench::cuda::attention
