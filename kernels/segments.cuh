// A kernel that passes once over segments of any length and alignment and applies a function to their elements.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/check.h"
#include "kernels/types.cuh"

namespace kbench::cuda {

/// Threads per block of segments_kernel.
inline constexpr int segment_threads = 256;

/// Applies a function to the elements of segments. Its `of(segment)` is called once per thread; of the result,
/// `reads(position)` says whether any element of the vector there is needed, and `apply` changes it in place.
/// Segments of `length` elements follow each other without gaps, so most start between two 16-byte boundaries. Elements
/// before the first and after the last boundary get a thread each, the others a thread per vector. x and out have the
/// same offset from a boundary and may be the same. A segment has blockDim.x threads in each of `chunks` blocks.
template <typename T, int N, int per_thread, typename Function>
__global__ void __launch_bounds__(segment_threads)
    segments_kernel(Function function, const T* x, T* out, std::int64_t segments, std::int64_t length,
                    unsigned chunks) {
    const std::int64_t segment = std::int64_t{blockIdx.x / chunks} * blockDim.y + threadIdx.y;
    if (segment >= segments) return;
    const unsigned chunk = blockIdx.x % chunks;
    const auto its = function.of(segment);
    x += segment * length;
    out += segment * length;
    std::int64_t head = 0;
    if constexpr (N > 1) {
        constexpr unsigned bytes = N * sizeof(T);
        const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(x) % bytes);
        head = (bytes - past) % bytes / sizeof(T);
        head = head < length ? head : length;
    }
    const std::int64_t vectors = (length - head) / N;
    const std::int64_t first = std::int64_t{chunk} * blockDim.x * per_thread + threadIdx.x;
    Vector<T, N> vector[per_thread];
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
        const std::int64_t index = first + i * blockDim.x, position = head + index * N;
        if (index < vectors && its.reads(position)) vector[i] = Vector<T, N>::load_once(x + position);
    }
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
        const std::int64_t index = first + i * blockDim.x, position = head + index * N;
        if (index >= vectors) continue;
        its.apply(vector[i], position);
        vector[i].store_whole(out + position);
    }
    if constexpr (N > 1) {  // fewer than 2 N elements, and 2 N is less than blockDim.x
        const std::int64_t edges = length - vectors * N;
        if (chunk > 0 || threadIdx.x >= edges) return;
        const std::int64_t position = threadIdx.x < head ? threadIdx.x : vectors * N + threadIdx.x;
        Vector<T, 1> one = {};
        if (its.reads(position)) one = Vector<T, 1>::load(x + position);
        its.apply(one, position);
        one.store(out + position);
    }
}

/// x and out are of T, and may be the same. Offsets from a 16-byte boundary may differ; then accesses are of one
/// element.
template <typename T, typename Function>
void launch_segments(const Function& function, const void* x, void* out, std::int64_t segments, std::int64_t length,
                     cudaStream_t stream) {
    constexpr int warp = 32, most_vectors = 4;
    const auto launch = [&]<int N>() {
        const std::int64_t vectors = std::max<std::int64_t>(1, length / N);
        const auto wanted = std::min<std::int64_t>(most_vectors, divide_up(vectors, warp));
        const auto vectors_each = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
        std::int64_t threads = warp;
        while (threads < segment_threads && threads * vectors_each < vectors) threads *= 2;
        const dim3 block(static_cast<unsigned>(threads), static_cast<unsigned>(segment_threads / threads));
        const std::int64_t chunks = divide_up(vectors, threads * vectors_each);
        const auto grid = static_cast<unsigned>(divide_up(segments, block.y) * chunks);
        const auto kernel = vectors_each == 1   ? segments_kernel<T, N, 1, Function>
                            : vectors_each == 2 ? segments_kernel<T, N, 2, Function>
                                                : segments_kernel<T, N, most_vectors, Function>;
        kernel<<<grid, block, 0, stream>>>(function, static_cast<const T*>(x), static_cast<T*>(out), segments, length,
                                           static_cast<unsigned>(chunks));
    };
    const auto past = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16; };
    if (past(x) == past(out))
        launch.template operator()<vector_width<T>>();
    else
        launch.template operator()<1>();
    KBENCH_CUDA_LAUNCHED("segments_kernel");
}

}  // namespace kbench::cuda
