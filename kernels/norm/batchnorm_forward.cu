// Batch norm with running statistics, bound by memory: each element is read once and written once, in accesses of up to
// 16 bytes, several of which each thread has in flight.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/norm/batchnorm.h"
#include "kernels/segments.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads_per_block = 256;

/// Normalises the elements of one channel.
template <typename A>
struct Channel {
    A center, scale, shift;
    __device__ A operator()(A value) const { return (value - center) * scale + shift; }
};

template <typename T>
__device__ Arithmetic<T> scale_of(Arithmetic<T> weight, Arithmetic<T> variance, Arithmetic<T> epsilon) {
    if constexpr (sizeof(T) == 2)  // the fast form errs by two units of fp32, which vanish in 16 bits
        return weight * rsqrtf(variance + epsilon);
    else
        return weight / sqrt(variance + epsilon);
}

/// The four parameter vectors of a batch norm.
template <typename T>
struct Statistics {
    const T *weight, *bias, *mean, *variance;
    Arithmetic<T> epsilon;
};

/// Channels are columns. A thread keeps to its N columns, computes their scales once for all of its rows, and has
/// `at_once` rows in flight. out may be x or residual, so no pointer to activations is __restrict__.
template <typename T, int N, bool with_residual>
__global__ void __launch_bounds__(threads_per_block, 4)
    column_norm_kernel(const T* x, const T* residual, Statistics<T> of, T* out, std::int64_t rows, std::int64_t width) {
    using A = Arithmetic<T>;
    constexpr int at_once = with_residual ? 2 : 4;
    const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
    if (column >= width) return;
    A centers[N], scales[N], shifts[N];
    {
        A variances[N];
        widen(Vector<T, N>::load(of.mean + column), centers);
        widen(Vector<T, N>::load(of.weight + column), scales);
        widen(Vector<T, N>::load(of.variance + column), variances);
        widen(Vector<T, N>::load(of.bias + column), shifts);
#pragma unroll
        for (int i = 0; i < N; ++i) scales[i] = scale_of<T>(scales[i], variances[i], of.epsilon);
    }
    const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
    for (std::int64_t first = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; first < rows;
         first += at_once * step) {
        Vector<T, N> stored[at_once], added[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            const std::int64_t row = first + j * step;
            if (row >= rows) continue;
            stored[j] = Vector<T, N>::load_once(x + row * width + column);
            if constexpr (with_residual) added[j] = Vector<T, N>::load_once(residual + row * width + column);
        }
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            const std::int64_t row = first + j * step;
            if (row >= rows) continue;
            A values[N];
            widen(stored[j], values);
            if constexpr (with_residual) {
                A others[N];
                widen(added[j], others);
#pragma unroll
                for (int i = 0; i < N; ++i) values[i] += others[i];
            }
            Vector<T, N> made;
#pragma unroll
            for (int i = 0; i < N; ++i)
                made.elements[i] = static_cast<T>(Channel<A>{centers[i], scales[i], shifts[i]}(values[i]));
            made.store_whole(out + row * width + column);
        }
    }
}

template <typename T>
void launch_column_norm(const T* x, const T* residual, const Statistics<T>& of, T* out, std::int64_t rows,
                        std::int64_t width, cudaStream_t stream) {
    constexpr std::int64_t most_blocks_y = 65535;  // CUDA C++ Programming Guide, technical specifications
    // Two rounds of four blocks on each of an H100's 132 SMs; more where a thread would get over 16 rows.
    constexpr std::int64_t blocks = 2 * 4 * 132, most_rows = 16;
    dispatch_vector<vector_width<T>>(width, {x, residual, of.weight, of.bias, of.mean, of.variance, out}, [&]<int N>() {
        const std::int64_t vectors = divide_up(width, N);
        const auto columns = std::min<std::int64_t>(threads_per_block, divide_up(vectors, 32) * 32);
        const dim3 block(static_cast<unsigned>(columns), static_cast<unsigned>(threads_per_block / columns));
        const std::int64_t across = divide_up(vectors, columns);
        const std::int64_t down = std::max(divide_up(blocks, across), divide_up(rows, block.y * most_rows));
        const dim3 grid(static_cast<unsigned>(across),
                        static_cast<unsigned>(std::min({down, divide_up(rows, block.y), most_blocks_y})));
        const auto kernel = residual ? column_norm_kernel<T, N, true> : column_norm_kernel<T, N, false>;
        kernel<<<grid, block, 0, stream>>>(x, residual, of, out, rows, width);
    });
    KBENCH_CUDA_LAUNCHED("column_norm_kernel");
}

/// A function for launch_segments: a segment is a channel of an image.
template <typename T>
struct NormSegments {
    Statistics<T> statistics;
    std::int64_t channels;

    using A = Arithmetic<T>;
    struct Segment {
        Channel<A> channel;
        __device__ bool reads(std::int64_t) const { return true; }
        template <int N>
        __device__ void apply(Vector<T, N>& vector, std::int64_t) const {
            A values[N];
            widen(vector, values);
#pragma unroll
            for (int i = 0; i < N; ++i) vector.elements[i] = static_cast<T>(channel(values[i]));
        }
    };
    __device__ Segment of(std::int64_t segment) const {
        const std::int64_t c = segment % channels;
        const auto at = [c](const T* vector) { return static_cast<A>(vector[c]); };
        return {{at(statistics.mean), scale_of<T>(at(statistics.weight), at(statistics.variance), statistics.epsilon),
                 at(statistics.bias)}};
    }
};

}  // namespace

void batch_norm_forward(DataType type, const BatchNorm& op, In<"x"> x, In<"residual?"> residual, In<"weight"> weight,
                        In<"bias"> bias, In<"running_mean"> mean, In<"running_var"> variance, Out<"out"> out,
                        cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        const auto of = [](const void* pointer) { return static_cast<const T*>(pointer); };
        const Statistics<T> statistics{of(weight), of(bias), of(mean), of(variance),
                                       static_cast<Arithmetic<T>>(op.epsilon)};
        if (op.channels == 0)
            return launch_column_norm<T>(of(x), of(residual), statistics, static_cast<T*>(out), op.rows, op.width,
                                         stream);
        if (residual) throw Unsupported("batch norm of NCHW adds no residual");
        launch_segments<T>(NormSegments<T>{statistics, op.channels}, x, out, op.rows / op.height, op.height * op.width,
                           stream);
    });
}

}  // namespace kbench::cuda
