// Tensor core instructions of sm_80 and newer as functions: loads of fragments and products of a warp.
// Fragments lie as in the PTX ISA ("Matrix fragments for mma"): lane = 4 g + t holds rows g and g + 8 of a, column g of
// b, and columns 2 t and 2 t + 1 of c in row g (c0, c1) and in row g + 8 (c2, c3).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace kbench::cuda {

/// Loads four 8 x 8 matrices of 16-bit elements, or 8 x 4 of 32 bits. Lane 8 i + r gives the address of row r of matrix
/// i, 16 bytes each. Lane 4 g + t receives bytes 4 t to 4 t + 3 of each row g.
__device__ inline void ldmatrix_x4(unsigned (&fragment)[4], const void* smem) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(address)
                 : "memory");
}
/// The same for matrices of 16-bit elements, each transposed on the way.
__device__ inline void ldmatrix_x4_transposed(unsigned (&fragment)[4], const void* smem) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(address)
                 : "memory");
}

/// What differs between fp16 and bf16: pack rounds two sums to T; mma does c += a b, 16 x 8 x 16, in fp32.
template <class T>
struct Mma16Bit;

template <>
struct Mma16Bit<__half> {
    static __device__ unsigned pack(float low, float high) {
        const __half2 pair = __floats2half2_rn(low, high);
        return *reinterpret_cast<const unsigned*>(&pair);
    }
    static __device__ void mma(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4], unsigned b0,
                               unsigned b1) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

template <>
struct Mma16Bit<__nv_bfloat16> {
    static __device__ unsigned pack(float low, float high) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<const unsigned*>(&pair);
    }
    static __device__ void mma(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4], unsigned b0,
                               unsigned b1) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

/// c += a b, 16 x 8 x 8, tf32 operands. a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g).
/// The tensor cores ignore the last 13 bits of each operand.
__device__ inline void mma_16x8x8(float& c0, float& c1, float& c2, float& c3, const float (&a)[4], float b0, float b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

/// The same in fp64. Before sm_90 there is only 8 x 8 x 4.
__device__ inline void mma_16x8x8(double& c0, double& c1, double& c2, double& c3, const double (&a)[4], double b0,
                                  double b1) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3)
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
    const auto mma_8x8x4 = [](double& low, double& high, double row, double column) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(low), "+d"(high)
            : "d"(row), "d"(column));
    };
    mma_8x8x4(c0, c1, a[0], b0);
    mma_8x8x4(c2, c3, a[1], b0);
    mma_8x8x4(c0, c1, a[2], b1);
    mma_8x8x4(c2, c3, a[3], b1);
#endif
}

/// c += a b for words of T: 16 x 8 x 16 for 16-bit elements, 16 x 8 x 8 in tf32 for floats. c: 4 sums.
template <class T>
__device__ inline void mma_words(float* c, const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (sizeof(T) == 2) {
        Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], a, b[0], b[1]);
    } else {
        const float rows[4] = {__uint_as_float(a[0]), __uint_as_float(a[1]), __uint_as_float(a[2]),
                               __uint_as_float(a[3])};
        mma_16x8x8(c[0], c[1], c[2], c[3], rows, __uint_as_float(b[0]), __uint_as_float(b[1]));
    }
}

}  // namespace kbench::cuda
