// What the native kernels share: dispatch on the element type, the type it is computed in, and vectorised access.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "kbench/error.h"
#include "kbench/precision.h"

namespace kbench::cuda {

/// The type that elements stored as T are computed in.
template <typename T>
using Arithmetic = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Elements of T in 16 bytes, the widest access of a thread.
template <typename T>
inline constexpr int vector_width = 16 / static_cast<int>(sizeof(T));

/// Calls `function.operator()<T>()` for the T that stores `type`.
template <typename Function>
void dispatch(DataType type, Function&& function) {
    switch (type) {
        case DataType::fp16: return function.template operator()<__half>();
        case DataType::bf16: return function.template operator()<__nv_bfloat16>();
        case DataType::fp32: return function.template operator()<float>();
        case DataType::fp64: return function.template operator()<double>();
        case DataType::int32: break;
    }
    throw UsageError("native kernels compute fp16, bf16, fp32 and fp64, not int32");
}

/// Calls `function.operator()<elements>()` when rows of `width` elements at `pointers` can be accessed in whole vectors
/// of `elements`, else `function.operator()<1>()`. Null pointers count as aligned.
template <int elements, typename Function>
void dispatch_vector(std::int64_t width, std::initializer_list<const void*> pointers, Function&& function) {
    bool whole = width % elements == 0;
    for (const void* pointer : pointers) whole &= reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
    if (whole) return function.template operator()<elements>();
    function.template operator()<1>();
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The unsigned type of one memory access of `bytes`.
template <std::size_t bytes>
using AccessBits =
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::conditional_t<bytes == 8, uint2, uint4>>>;

/// One store to global memory where `condition` holds. In some kernels the compiler splits a 16-byte assignment into
/// four stores that each write a quarter of the sectors they touch; they, not DRAM, then bounded cross-entropy's
/// gradient. The compiler may move this store past other accesses, so `address` must be read only to compute its value.
__device__ inline void store_global_if(bool condition, std::uint16_t* address, std::uint16_t bits) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.b16 [%1], %2;\n}" ::"r"(
                     static_cast<unsigned>(condition)),
                 "l"(__cvta_generic_to_global(address)), "h"(bits));
}
__device__ inline void store_global_if(bool condition, std::uint32_t* address, std::uint32_t bits) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.b32 [%1], %2;\n}" ::"r"(
                     static_cast<unsigned>(condition)),
                 "l"(__cvta_generic_to_global(address)), "r"(bits));
}
__device__ inline void store_global_if(bool condition, uint2* address, uint2 bits) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v2.b32 [%1], {%2, %3};\n}" ::"r"(
                     static_cast<unsigned>(condition)),
                 "l"(__cvta_generic_to_global(address)), "r"(bits.x), "r"(bits.y));
}
__device__ inline void store_global_if(bool condition, uint4* address, uint4 bits) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v4.b32 [%1], {%2, %3, %4, %5};\n}" ::"r"(
                     static_cast<unsigned>(condition)),
                 "l"(__cvta_generic_to_global(address)), "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w));
}

/// N neighbouring elements, moved in as few accesses as their size allows (16 bytes each).
template <typename T, int N>
struct Vector {
    T elements[N];

    static constexpr std::size_t access_bytes = sizeof(T) * N < 16 ? sizeof(T) * N : 16;
    static constexpr int accesses = static_cast<int>(sizeof(T) * N / access_bytes);
    using Bits = AccessBits<access_bytes>;

    static __device__ Vector load(const T* address) {
        return read(address, [](const Bits* access) { return *access; });
    }
    /// Bypasses L1, for data that is read once, so that L1 keeps what other threads read again.
    static __device__ Vector load_once(const T* address) {
        return read(address, [](const Bits* access) { return __ldcg(access); });
    }

    __device__ void store(T* address) const {
        write(address, [](Bits* access, const Bits& bits) { *access = bits; });
    }
    /// Stores to global memory in whole accesses where `condition` holds: see store_global_if.
    __device__ void store_whole(T* address, bool condition = true) const {
        write(address, [=](Bits* access, const Bits& bits) { store_global_if(condition, access, bits); });
    }

  private:
    template <typename Write>
    __device__ void write(T* address, Write access) const {
#pragma unroll
        for (int i = 0; i < accesses; ++i) {
            Bits bits;
            memcpy(&bits, reinterpret_cast<const char*>(elements) + i * access_bytes, access_bytes);
            access(reinterpret_cast<Bits*>(address) + i, bits);
        }
    }
    template <typename Read>
    static __device__ Vector read(const T* address, Read access) {
        Vector vector;
#pragma unroll
        for (int i = 0; i < accesses; ++i) {
            const Bits bits = access(reinterpret_cast<const Bits*>(address) + i);
            memcpy(reinterpret_cast<char*>(vector.elements) + i * access_bytes, &bits, access_bytes);
        }
        return vector;
    }
};

}  // namespace kbench::cuda
