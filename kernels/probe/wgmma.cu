// Loops of wgmma without loads. Compiled for sm_90a only (CMakeLists.txt), and launched only on compute
// capability 9.0.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/values.h"
#include "kernels/probe/wgmma.h"

namespace kbench::cuda::probe {
namespace {

constexpr int warpgroup_threads = 128;
constexpr int row_bytes = 128;        // row of an operand in shared memory: as wide as the swizzle
constexpr int group_bytes = 8 * 128;  // rows that are swizzled among themselves
constexpr int step_bytes = 32;        // part of k that one instruction takes, whatever the type
constexpr int steps = row_bytes / step_bytes;
constexpr int sums = wgmma_m * wgmma_n / warpgroup_threads;
constexpr int a_bytes = wgmma_m * row_bytes, b_bytes = wgmma_n * row_bytes;

/// Where byte `byte` of row `row` of an operand lies: 16-byte chunks are permuted by the row (128-byte swizzle).
__device__ int swizzled(int row, int byte) { return row * row_bytes + ((byte / 16) ^ (row % 8)) * 16 + byte % 16; }

template <Precision precision>
struct Element;
template <>
struct Element<Precision::fp16> {
    using Type = __half;
    static __device__ Type of(float value) { return __float2half_rn(value); }
};
template <>
struct Element<Precision::bf16> {
    using Type = __nv_bfloat16;
    static __device__ Type of(float value) { return __float2bfloat16_rn(value); }
};
template <>
struct Element<Precision::tf32> {
    using Type = float;
    static __device__ Type of(float value) { return value; }
};

/// Writes an operand of `rows` rows; all threads of the block take part.
template <Precision precision>
__device__ void write_operand(unsigned char* tile, std::uint32_t matrix, int rows) {
    using Type = typename Element<precision>::Type;
    constexpr int depth = wgmma_depth(precision);
    static_assert(depth * sizeof(Type) == row_bytes);
    for (int i = static_cast<int>(threadIdx.x); i < rows * depth; i += static_cast<int>(blockDim.x)) {
        const int row = i / depth, k = i % depth;
        const float value = operand(matrix, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(k));
        *reinterpret_cast<Type*>(tile + swizzled(row, k * static_cast<int>(sizeof(Type)))) =
            Element<precision>::of(value);
    }
}

/// PTX's matrix descriptor: address, leading offset (unused with a swizzle) and the distance between groups of 8 rows,
/// all in units of 16 bytes; 1 in the highest bits selects the 128-byte swizzle.
__device__ std::uint64_t descriptor(const unsigned char* tile) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
    constexpr std::uint64_t leading = 1, stride = group_bytes / 16, swizzle_128 = 1;
    return (std::uint64_t{address} & 0x3ffff) >> 4 | leading << 16 | stride << 32 | swizzle_128 << 62;
}

#define KBENCH_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define KBENCH_SUMS_16(d, i) \
    KBENCH_SUMS_4(d, i), KBENCH_SUMS_4(d, i + 4), KBENCH_SUMS_4(d, i + 8), KBENCH_SUMS_4(d, i + 12)
#define KBENCH_SUMS(d)                                                                                                \
    KBENCH_SUMS_16(d, 0), KBENCH_SUMS_16(d, 16), KBENCH_SUMS_16(d, 32), KBENCH_SUMS_16(d, 48), KBENCH_SUMS_16(d, 64), \
        KBENCH_SUMS_16(d, 80), KBENCH_SUMS_16(d, 96), KBENCH_SUMS_16(d, 112)

// clang-format off
#define KBENCH_SUM_REGISTERS \
    "{" \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127" \
    "}"
// clang-format on

/// d += a b^T over 32 bytes of k. The ones mean: add to d, and positive signs of a and b. The zeros: both lie along k.
template <Precision precision>
__device__ void multiply(float (&d)[sums], std::uint64_t a, std::uint64_t b) {
    if constexpr (precision == Precision::fp16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " KBENCH_SUM_REGISTERS
                     ", %128, %129, 1, 1, 1, 0, 0;"
                     : KBENCH_SUMS(d)
                     : "l"(a), "l"(b));
    else if constexpr (precision == Precision::bf16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " KBENCH_SUM_REGISTERS
                     ", %128, %129, 1, 1, 1, 0, 0;"
                     : KBENCH_SUMS(d)
                     : "l"(a), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 " KBENCH_SUM_REGISTERS
                     ", %128, %129, 1, 1, 1;"
                     : KBENCH_SUMS(d)
                     : "l"(a), "l"(b));
}

/// Keeps the compiler from moving reads or writes of the sums across this point.
__device__ void pin(float (&d)[sums]) { asm volatile("" : KBENCH_SUMS(d)::"memory"); }

/// A block has as many threads as its warpgroups; 3 of them leave 168 registers per thread, of which sums take 128.
template <Precision precision>
__global__ __launch_bounds__(wgmma_max_warpgroups* warpgroup_threads) void wgmma_kernel(int iterations, float* out,
                                                                                        Span* span) {
    extern __shared__ unsigned char memory[];
    // The swizzle depends on the address: operands start at multiples of its 1024 bytes.
    const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
    unsigned char* const b = memory + (group_bytes - start % group_bytes) % group_bytes;
    const int block = static_cast<int>(blockIdx.x), warpgroups = static_cast<int>(blockDim.x) / warpgroup_threads;
    write_operand<precision>(b, wgmma_matrix_b(block), wgmma_n);
    for (int w = 0; w < warpgroups; ++w)
        write_operand<precision>(b + b_bytes + w * a_bytes, wgmma_matrix_a(block, w), wgmma_m);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads through another proxy than the writes
    __syncthreads();

    const Stopwatch watch;
    const std::uint64_t b_tile = descriptor(b);
    const std::uint64_t a_tile = descriptor(b + b_bytes + threadIdx.x / warpgroup_threads * a_bytes);
    float d[sums];
#pragma unroll
    for (int i = 0; i < sums; ++i) d[i] = 0;
    pin(d);
#pragma unroll 1
    for (int i = 0; i < iterations; ++i) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int turn = 0; turn < wgmma_turns; ++turn)
#pragma unroll
            for (int step = 0; step < steps; ++step)
                multiply<precision>(d, a_tile + step * step_bytes / 16, b_tile + step * step_bytes / 16);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(d);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < sums; ++i) sum += d[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    watch.stop(span);
}

template <Precision precision>
void launch(int warpgroups, int blocks, int iterations, float* out, Span* span, cudaStream_t stream) {
    const auto kernel = wgmma_kernel<precision>;
    const int shared_bytes = group_bytes + b_bytes + warpgroups * a_bytes;
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(warpgroups * warpgroup_threads),
             static_cast<std::size_t>(shared_bytes), stream>>>(iterations, out, span);
    KBENCH_CUDA_LAUNCHED("wgmma_kernel");
}

}  // namespace

void wgmma_chains(Precision precision, int warpgroups, int blocks, int iterations, float* out, Span* span,
                  cudaStream_t stream) {
    if (warpgroups < 1 || warpgroups > wgmma_max_warpgroups)
        throw UsageError("a probe of wgmma has 1 to 3 warpgroups a block, not " + std::to_string(warpgroups));
    switch (precision) {
        case Precision::fp16: return launch<Precision::fp16>(warpgroups, blocks, iterations, out, span, stream);
        case Precision::bf16: return launch<Precision::bf16>(warpgroups, blocks, iterations, out, span, stream);
        case Precision::tf32: return launch<Precision::tf32>(warpgroups, blocks, iterations, out, span, stream);
        default: throw UsageError("wgmma takes fp16, bf16 or tf32, not " + std::string(name(precision)));
    }
}

}  // namespace kbench::cuda::probe
