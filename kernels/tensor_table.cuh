// How kernels work on many tensors in one launch: a table of their pointers and sizes goes along as a kernel parameter,
// and each block finds its chunk in it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/types.cuh"

namespace kbench::cuda {

/// Elements of a tensor that a block takes at a time: 230 KB of bf16 weights, gradients, m and v, read and written. A
/// multiple of every vector.
inline constexpr std::int64_t tensor_chunk = 16384;
inline constexpr int tensor_threads = 256;

/// Some tensors, each of `arrays` arrays. 32,764 bytes are the most that parameters may have from CUDA 12.1 and sm_70
/// on (CUDA C++ Programming Guide, "Function Parameters"); 580 tensors fit with five arrays each.
template <int arrays>
struct TensorTable {
    static constexpr int capacity = (32764 - 128) / (arrays * 8 + 8 + 4);
    void* pointers[arrays][capacity];
    std::int64_t sizes[capacity];
    int first_chunk[capacity];  ///< of each tensor, in the order of tensors
    int count, chunks;

    /// The tensor of a chunk: the last that begins at or before it.
    __device__ int tensor_of(int chunk) const {
        int first = 0, last = count - 1;
        while (first < last) {
            const int middle = (first + last + 1) / 2;
            if (first_chunk[middle] <= chunk)
                first = middle;
            else
                last = middle - 1;
        }
        return first;
    }
    /// Whether a tensor's arrays all lie on 16-byte boundaries.
    __device__ bool is_aligned(int tensor) const {
        std::uintptr_t bits = 0;
#pragma unroll
        for (int array = 0; array < arrays; ++array) bits |= reinterpret_cast<std::uintptr_t>(pointers[array][tensor]);
        return bits % 16 == 0;
    }
};
static_assert(sizeof(TensorTable<5>) <= 32764 - 64 && sizeof(TensorTable<1>) <= 32764 - 64);
static_assert(TensorTable<5>::capacity >= 580);

/// Calls `launch(table)` for all tensors, as many at a time as a table holds. `pointers_of(tensor, array)`.
template <int arrays, typename PointersOf, typename Launch>
void for_tensor_tables(std::span<const std::int64_t> sizes, PointersOf pointers_of, Launch launch) {
    TensorTable<arrays> table;
    table.count = table.chunks = 0;
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
        for (int array = 0; array < arrays; ++array) table.pointers[array][table.count] = pointers_of(tensor, array);
        table.sizes[table.count] = sizes[tensor];
        table.first_chunk[table.count] = table.chunks;
        table.chunks += static_cast<int>(divide_up(sizes[tensor], tensor_chunk));
        ++table.count;
        if (table.count < TensorTable<arrays>::capacity && tensor + 1 < sizes.size()) continue;
        launch(table);
        table.count = table.chunks = 0;
    }
}

}  // namespace kbench::cuda
