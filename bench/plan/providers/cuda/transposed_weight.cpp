// Transposes on the host: done once for each weight, before anything is timed.
#include "bench/plan/providers/cuda/transposed_weight.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/check.h"

namespace kbench {
namespace {

/// out[c, r] = in[r, c] for elements of T, in blocks that stay in the L1 cache.
template <class T>
void transpose(const void* in, std::int64_t rows, std::int64_t columns, void* out) {
    constexpr std::int64_t block = 32;
    const auto* from = static_cast<const T*>(in);
    auto* to = static_cast<T*>(out);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t r0 = 0; r0 < rows; r0 += block)
        for (std::int64_t c0 = 0; c0 < columns; c0 += block)
            for (std::int64_t c = c0; c < std::min(c0 + block, columns); ++c)
                for (std::int64_t r = r0; r < std::min(r0 + block, rows); ++r) to[c * rows + r] = from[r * columns + c];
}

void transpose(DataType type, const void* in, std::int64_t rows, std::int64_t columns, void* out) {
    switch (size_of(type)) {
        case 2: return transpose<std::uint16_t>(in, rows, columns, out);
        case 4: return transpose<std::uint32_t>(in, rows, columns, out);
        default: return transpose<std::uint64_t>(in, rows, columns, out);
    }
}

}  // namespace

void pack_transposed(DataType type, const void* plain, std::int64_t k, std::int64_t n, void* packed) {
    std::vector<std::byte> host(static_cast<std::size_t>(k * n) * size_of(type));
    transpose(type, plain, k, n, host.data());
    KBENCH_CUDA(cudaMemcpy(packed, host.data(), host.size(), cudaMemcpyHostToDevice));
}

}  // namespace kbench
