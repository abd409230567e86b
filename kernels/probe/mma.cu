// Chains of mma.sync. Fragments as in PTX: with g = lane / 4 and t = lane % 4, A holds rows g and g + 8, B column g,
// the sums rows g and g + 8 and columns 2 t and 2 t + 1.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>
#include <type_traits>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/mma.h"
#include "kernels/probe/values.h"

namespace kbench::cuda::probe {
namespace {

struct Lane {
    std::uint32_t a, b;  ///< matrices
    std::uint32_t g, t;
};

/// Packs two neighbouring 16-bit elements into one register.
template <typename T>
__device__ std::uint32_t pack(std::uint32_t matrix, std::uint32_t row, std::uint32_t k) {
    const auto bits = [&](std::uint32_t column) -> std::uint32_t {
        if constexpr (std::is_same_v<T, __half>)
            return __half_as_ushort(__float2half_rn(operand(matrix, row, column)));
        else
            return __bfloat16_as_ushort(__float2bfloat16_rn(operand(matrix, row, column)));
    };
    return bits(k) | bits(k + 1) << 16;
}

template <typename T>
struct Mma16Bit {
    using Sum = float;
    static constexpr int sums = 4;
    struct A {
        std::uint32_t words[4];
    };
    struct B {
        std::uint32_t words[2];
    };
    static __device__ A load_a(const Lane& lane) {
        A a;
#pragma unroll
        for (int i = 0; i < 4; ++i) a.words[i] = pack<T>(lane.a, lane.g + (i % 2) * 8, lane.t * 2 + (i / 2) * 8);
        return a;
    }
    static __device__ B load_b(const Lane& lane, std::uint32_t tile) {
        const std::uint32_t column = tile * 8 + lane.g;
        return {{pack<T>(lane.b, column, lane.t * 2), pack<T>(lane.b, column, lane.t * 2 + 8)}};
    }
    static __device__ void multiply(float (&c)[4], const A& a, const B& b) {
        if constexpr (std::is_same_v<T, __half>)
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
        else
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
    }
};

struct MmaTf32 {
    using Sum = float;
    static constexpr int sums = 4;
    struct A {
        std::uint32_t words[4];
    };
    struct B {
        std::uint32_t words[2];
    };
    static __device__ A load_a(const Lane& lane) {
        A a;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            a.words[i] = __float_as_uint(operand(lane.a, lane.g + (i % 2) * 8, lane.t + (i / 2) * 4));
        return a;
    }
    static __device__ B load_b(const Lane& lane, std::uint32_t tile) {
        const std::uint32_t column = tile * 8 + lane.g;
        return {
            {__float_as_uint(operand(lane.b, column, lane.t)), __float_as_uint(operand(lane.b, column, lane.t + 4))}};
    }
    static __device__ void multiply(float (&c)[4], const A& a, const B& b) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
    }
};

struct MmaFp64 {
    using Sum = double;
    static constexpr int sums = 2;
    using A = double;
    using B = double;
    static __device__ A load_a(const Lane& lane) { return operand(lane.a, lane.g, lane.t); }
    static __device__ B load_b(const Lane& lane, std::uint32_t tile) {
        return operand(lane.b, tile * 8 + lane.g, lane.t);
    }
    static __device__ void multiply(double (&c)[2], const A& a, const B& b) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"(a), "d"(b));
    }
};

struct MmaFp64Wide {
    using Sum = double;
    static constexpr int sums = 4;
    struct A {
        double elements[8];
    };
    struct B {
        double elements[4];
    };
    static __device__ A load_a(const Lane& lane) {
        A a;
#pragma unroll
        for (int i = 0; i < 8; ++i) a.elements[i] = operand(lane.a, lane.g + (i % 2) * 8, lane.t + (i / 2) * 4);
        return a;
    }
    static __device__ B load_b(const Lane& lane, std::uint32_t tile) {
        B b;
#pragma unroll
        for (int i = 0; i < 4; ++i) b.elements[i] = operand(lane.b, tile * 8 + lane.g, lane.t + i * 4);
        return b;
    }
    /// Needs compute capability 9.0; on older devices it is never launched, see mma_unsupported().
    static __device__ void multiply([[maybe_unused]] double (&c)[4], [[maybe_unused]] const A& a,
                                    [[maybe_unused]] const B& b) {
#if __CUDA_ARCH__ >= 900
        const auto& [a0, a1, a2, a3, a4, a5, a6, a7] = a.elements;
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(a4), "d"(a5), "d"(a6), "d"(a7), "d"(b.elements[0]),
              "d"(b.elements[1]), "d"(b.elements[2]), "d"(b.elements[3]));
#endif
    }
};

template <typename M, int tiles>
__global__ __launch_bounds__(mma_threads) void mma_kernel(int iterations, typename M::Sum* out, Span* span) {
    const unsigned thread = blockIdx.x * mma_threads + threadIdx.x, warp = thread / 32;
    const Lane lane{2 * warp, 2 * warp + 1, thread % 32 / 4, thread % 4};
    const typename M::A a = M::load_a(lane);
    typename M::B b[tiles];
    typename M::Sum c[tiles][M::sums] = {};
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) b[tile] = M::load_b(lane, static_cast<std::uint32_t>(tile));
    const Stopwatch watch;
#pragma unroll 1
    for (int i = 0; i < iterations; ++i) {
#pragma unroll
        for (int turn = 0; turn < mma_turns; ++turn)
#pragma unroll
            for (int tile = 0; tile < tiles; ++tile) M::multiply(c[tile], a, b[tile]);
    }
    typename M::Sum sum = 0;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
        for (int i = 0; i < M::sums; ++i) sum += c[tile][i];
    out[thread] = sum;
    watch.stop(span);
}

/// Calls `function.operator()<M>()` for the M of `mma`.
template <typename Function>
auto dispatch_mma(Mma mma, Function&& function) {
    switch (mma) {
        case Mma::fp16_16x8x16: return function.template operator()<Mma16Bit<__half>>();
        case Mma::bf16_16x8x16: return function.template operator()<Mma16Bit<__nv_bfloat16>>();
        case Mma::tf32_16x8x8: return function.template operator()<MmaTf32>();
        case Mma::fp64_8x8x4: return function.template operator()<MmaFp64>();
        case Mma::fp64_16x8x16: break;
    }
    return function.template operator()<MmaFp64Wide>();
}

}  // namespace

const char* mma_unsupported(Mma mma) {
    cudaFuncAttributes attributes{};
    const cudaError_t status =
        dispatch_mma(mma, [&]<typename M>() { return cudaFuncGetAttributes(&attributes, mma_kernel<M, 4>); });
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
        cudaGetLastError();  // or the next launch would report it
        return "kbench was not built for this architecture";
    }
    KBENCH_CUDA(status);
    const bool wide = mma == Mma::fp64_16x8x16;
    return wide && attributes.ptxVersion < 90 ? "needs code for compute capability 9.0" : "";
}

void mma_chains(Mma mma, int tiles, int blocks, int iterations, void* out, Span* span, cudaStream_t stream) {
    if (tiles != 4 && tiles != 8)
        throw UsageError("a probe of mma.sync has 4 or 8 tiles a warp, not " + std::to_string(tiles));
    dispatch_mma(mma, [&]<typename M>() {
        const auto kernel = tiles == 4 ? mma_kernel<M, 4> : mma_kernel<M, 8>;
        kernel<<<static_cast<unsigned>(blocks), mma_threads, 0, stream>>>(iterations,
                                                                          static_cast<typename M::Sum*>(out), span);
    });
    KBENCH_CUDA_LAUNCHED("mma_kernel");
}

}  // namespace kbench::cuda::probe
