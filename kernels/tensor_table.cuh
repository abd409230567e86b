// How kernels work on many tensors in one launch: a table of pointers and sizes is passed as a kernel parameter, and
// each block finds its chunk in it.
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

/// Some tensors, each with `arrays` arrays. Blocks take chunks of `elements`, a multiple of every vector width, one at
/// a time. Parameters may have at most 32,764 bytes from CUDA 12.1 and sm_70 on (CUDA C++ Programming Guide,
/// "Function Parameters"), which fits 580 tensors with five arrays each.
template <int arrays, int elements>
struct TensorTable {
    static constexpr int chunk = elements;
    static constexpr int capacity = (32764 - 128) / (arrays * 8 + 8 + 4);
    void* pointers[arrays][capacity];
    std::int64_t sizes[capacity];
    int first_chunk[capacity];  ///< first chunk of each tensor, ascending
    int count, chunks;

    /// The tensor of chunk `index`: the last one that starts at or before it.
    __device__ int tensor_of(int index) const {
        int first = 0, last = count - 1;
        while (first < last) {
            const int middle = (first + last + 1) / 2;
            if (first_chunk[middle] <= index)
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
static_assert(sizeof(TensorTable<5, 16>) <= 32764 - 64 && sizeof(TensorTable<1, 16>) <= 32764 - 64);
static_assert(TensorTable<5, 16>::capacity >= 580);

/// Calls `launch(table)` for all tensors, as many at a time as a table holds; `pointers_of(tensor, array)` locates one.
template <int arrays, int chunk, typename PointersOf, typename Launch>
void for_tensor_tables(std::span<const std::int64_t> sizes, PointersOf pointers_of, Launch launch) {
    using Table = TensorTable<arrays, chunk>;
    Table table;
    table.count = table.chunks = 0;
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
        for (int array = 0; array < arrays; ++array) table.pointers[array][table.count] = pointers_of(tensor, array);
        table.sizes[table.count] = sizes[tensor];
        table.first_chunk[table.count] = table.chunks;
        table.chunks += static_cast<int>(divide_up(sizes[tensor], chunk));
        ++table.count;
        if (table.count < Table::capacity && tensor + 1 < sizes.size()) continue;
        launch(table);
        table.count = table.chunks = 0;
    }
}

}  // namespace kbench::cuda
