// The backward of a bias: sums over columns, bound by memory. A thread has five 16-byte loads in flight, four blocks
// per SM together 80 KB. The grid has as many blocks as run at once: for [4096, 5120] in 16 bits, 1280 blocks instead
// of 792 would take a second round at half the bandwidth.
#include "kernels/bias_backward.h"

#include <algorithm>

#include "kernels/column_sums.cuh"
#include "kernels/programmatic.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads_per_block = 256, blocks_of_sm = 4, loads_in_flight = 5;
/// Limits for the parts that rows are cut into: at least this many rows each, and at most as many as one block adds up.
constexpr std::int64_t least_rows = 32, most_parts = 128;

struct Parts {
    std::int64_t rows_each, count;
};

/// The partition. It ignores alignment: as many blocks as run at once when columns are read in whole vectors.
Parts parts_of(DataType type, std::int64_t rows, std::int64_t width) {
    int device = 0, sms = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    const std::int64_t column_blocks = divide_up(width * static_cast<std::int64_t>(size_of(type)), 32 * 16);
    const std::int64_t most = std::clamp<std::int64_t>(blocks_of_sm * sms / column_blocks, 1, most_parts);
    const std::int64_t rows_each = std::max(least_rows, divide_up(rows, most));
    return {rows_each, divide_up(rows, rows_each)};
}

/// Row blockIdx.y of `partial` [parts, width] becomes the sums of rows_each rows of dy. A block reads blockDim.y (a
/// power of two) rows at once and adds their sums up pairwise at the end.
template <typename T, int N>
__global__ void __launch_bounds__(threads_per_block, blocks_of_sm + 1)  // + 1: room for a block of the second kernel
    column_sums_kernel(const T* __restrict__ dy, Arithmetic<T>* __restrict__ partial, std::int64_t rows,
                       std::int64_t width, std::int64_t rows_each) {
    using A = Arithmetic<T>;
    __shared__ __align__(16) A scratch[threads_per_block * N];
    const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
    const std::int64_t first = blockIdx.y * rows_each, last = min(rows, first + rows_each);
    Vector<A, N> sums = {};
    if (column < width) {
        for (std::int64_t row = first + threadIdx.y; row < last; row += loads_in_flight * blockDim.y) {
            Vector<T, N> values[loads_in_flight] = {};
#pragma unroll
            for (int i = 0; i < loads_in_flight; ++i)
                if (row + i * blockDim.y < last)
                    values[i] = Vector<T, N>::load_once(dy + (row + i * blockDim.y) * width + column);
#pragma unroll
            for (int i = 0; i < loads_in_flight; ++i) {
                A wide[N];
                widen(values[i], wide);
#pragma unroll
                for (int j = 0; j < N; ++j) sums.elements[j] += wide[j];
            }
        }
    }
    let_next_launch();
    A* own = scratch + (threadIdx.y * blockDim.x + threadIdx.x) * N;
    sums.store(own);
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y >= half) continue;
        const auto other = Vector<A, N>::load(own + half * blockDim.x * N);
#pragma unroll
        for (int j = 0; j < N; ++j) sums.elements[j] += other.elements[j];
        sums.store(own);
    }
    if (threadIdx.y == 0 && column < width) sums.store_whole(partial + blockIdx.y * width + column);
}

}  // namespace

std::size_t bias_backward_workspace_bytes(DataType type, const BiasAdd& op) {
    const std::size_t arithmetic = type == DataType::fp64 ? sizeof(double) : sizeof(float);
    return arithmetic * static_cast<std::size_t>(parts_of(type, op.rows, op.width).count * op.width);
}

void bias_backward(DataType type, const BiasAdd& op, In<"dy"> dy, Out<"db"> db, void* workspace, cudaStream_t stream) {
    const Parts parts = parts_of(type, op.rows, op.width);
    dispatch(type, [&]<typename T>() {
        auto* partial = static_cast<Arithmetic<T>*>(workspace);
        dispatch_vector<vector_width<T>>(op.width, {dy}, [&]<int N>() {
            const std::int64_t vectors = divide_up(op.width, N);
            unsigned columns = 1;
            while (columns < 32 && columns < vectors) columns *= 2;
            const dim3 block(columns, threads_per_block / columns);
            const dim3 grid(static_cast<unsigned>(divide_up(vectors, columns)), static_cast<unsigned>(parts.count));
            column_sums_kernel<T, N><<<grid, block, 0, stream>>>(dy, partial, op.rows, op.width, parts.rows_each);
        });
        KBENCH_CUDA_LAUNCHED("column_sums_kernel");
        add_parts<T>(partial, parts.count, op.width, db, op.width, nullptr, op.accumulates, stream);
    });
}

}  // namespace kbench::cuda
