// Parts of the persistent LSTM kernels: PTX without an intrinsic, the cell, clocks. Compiled for sm_90a only
// (CMakeLists.txt).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/recurrent/persistent/kernel.h"
#include "kernels/recurrent/persistent/layout.h"

namespace kbench::cuda::persistent {

/// Ends the kernel with an error when it has waited too long: a kernel that hangs would block the
/// device.
class Patience {
  public:
    __device__ void wait() {
        if (++turns_ % 1024 != 0) return;
        std::uint64_t now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (end_ == 0) end_ = now + limit_ns;
        if (now > end_) __trap();
    }

  private:
    static constexpr std::uint64_t limit_ns = 2'000'000'000;
    std::uint64_t end_ = 0;
    unsigned turns_ = 0;
};

__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Orders later accesses by tensor cores and bulk copies, in shared and global memory, after all earlier accesses.
__device__ inline void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ inline void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void release_one(std::uint32_t* counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ inline std::uint32_t acquire(const std::uint32_t* counter) {
    std::uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}
__device__ inline uint4 load_relaxed(const uint4* address) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address)
                 : "memory");
    return v;
}
__device__ inline void store_relaxed(std::uint32_t* address, std::uint32_t value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
__device__ inline void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
/// A load that starts here and is waited for where its value is used. It bypasses L1.
__device__ inline std::uint16_t load_once(const void* address) {
    std::uint16_t bits;
    asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(bits) : "l"(address));
    return bits;
}

/// A barrier in shared memory that counts one thread and the bytes of a bulk copy.
class CopyBarrier {
  public:
    __device__ void init() {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&state_)) : "memory");
    }
    /// One thread calls it; sizes and addresses are multiples of 16 bytes.
    __device__ void copy(void* smem, const void* global, unsigned bytes) {
        const unsigned barrier = shared_address(&state_);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(smem)),
                     "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier)
                     : "memory");
    }
    __device__ bool is_past(unsigned parity) const {
        unsigned done;
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(&state_)), "r"(parity)
                     : "memory");
        return done != 0;
    }

  private:
    std::uint64_t state_;
};

/// Counts the cycles of a step's phases, for one thread; does nothing in variants without clocks. 32 bits are enough
/// for 4000 cycles in each of a million steps.
template <bool present>
class PhaseClock {
  public:
    __device__ void start() {
        if constexpr (present) last_ = clock();
    }
    __device__ void end(PersistentPhase phase) {
        if constexpr (present) add(phase, static_cast<unsigned>(clock()));
    }
    /// Reads the clock only once `value` is known. The assembler moves a clock read over instructions that it does not
    /// depend on, but not over a trap. No product gives the value that would trap.
    __device__ void end_with(PersistentPhase phase, float value) {
        if constexpr (present) {
            unsigned now;
            asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %1, 0x7fc0dead;\n@p trap;\nmov.u32 %0, %%clock;\n}"
                         : "=r"(now)
                         : "r"(__float_as_uint(value))
                         : "memory");
            add(phase, now);
        }
    }
    __device__ void write(std::uint64_t* to) const {
        if constexpr (present)
            for (int i = 0; i < persistent_phases; ++i) to[i] = sums_[i];
    }

  private:
    __device__ void add(PersistentPhase phase, unsigned now) {
        sums_[static_cast<int>(phase)] += now - last_;
        last_ = now;
    }

    unsigned last_ = 0, sums_[present ? persistent_phases : 1] = {};
};

#define KBENCH_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define KBENCH_SUMS_8(d, i) KBENCH_SUMS_4(d, i), KBENCH_SUMS_4(d, i + 4)
#define KBENCH_SUMS_16(d, i) KBENCH_SUMS_8(d, i), KBENCH_SUMS_8(d, i + 8)
// d = a b (add 0) or d += a b (add 1). The ones are the signs of a and b; the zero says that b lies along k.
#define KBENCH_MULTIPLY(shape, type, sums, a_registers, b_register, add_register)                                      \
    asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." type "." type " " sums ", " a_registers ", " b_register \
                 ", " add_register ", 1, 1, 0;"                                                                        \
                 : KBENCH_D                                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(add))

// clang-format off
#define KBENCH_MULTIPLY_8(type)                                                                        \
    KBENCH_MULTIPLY("m64n8k16", type, "{%0,%1,%2,%3}", "{%4,%5,%6,%7}", "%8", "%9")
#define KBENCH_MULTIPLY_16(type)                                                                       \
    KBENCH_MULTIPLY("m64n16k16", type, "{%0,%1,%2,%3,%4,%5,%6,%7}", "{%8,%9,%10,%11}", "%12", "%13")
#define KBENCH_MULTIPLY_32(type)                                                                       \
    KBENCH_MULTIPLY("m64n32k16", type, "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}",      \
                    "{%16,%17,%18,%19}", "%20", "%21")
#define KBENCH_MULTIPLY_64(type)                                                                       \
    KBENCH_MULTIPLY("m64n64k16", type, "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"       \
                    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}",                \
                    "{%32,%33,%34,%35}", "%36", "%37")
// clang-format on

/// d[64, columns] = or += a[64, 16] b[16, columns]; a is this thread's fragment, b a descriptor.
template <typename T, int columns, int add>
__device__ void multiply(float (&d)[columns / 2], const std::uint32_t (&a)[4], std::uint64_t b) {
    constexpr bool half = std::is_same_v<T, __half>;
    if constexpr (columns == 8) {
#define KBENCH_D KBENCH_SUMS_4(d, 0)
        if constexpr (half)
            KBENCH_MULTIPLY_8("f16");
        else
            KBENCH_MULTIPLY_8("bf16");
#undef KBENCH_D
    } else if constexpr (columns == 16) {
#define KBENCH_D KBENCH_SUMS_8(d, 0)
        if constexpr (half)
            KBENCH_MULTIPLY_16("f16");
        else
            KBENCH_MULTIPLY_16("bf16");
#undef KBENCH_D
    } else if constexpr (columns == 32) {
#define KBENCH_D KBENCH_SUMS_16(d, 0)
        if constexpr (half)
            KBENCH_MULTIPLY_32("f16");
        else
            KBENCH_MULTIPLY_32("bf16");
#undef KBENCH_D
    } else {
        static_assert(columns == 64);
#define KBENCH_D KBENCH_SUMS_16(d, 0), KBENCH_SUMS_16(d, 16)
        if constexpr (half)
            KBENCH_MULTIPLY_64("f16");
        else
            KBENCH_MULTIPLY_64("bf16");
#undef KBENCH_D
    }
}

/// PTX's matrix descriptor: address in shared memory and distance to the next core matrix along k and along n, all in
/// units of 16 bytes; no swizzle.
__device__ inline std::uint64_t descriptor(unsigned address, int columns) {
    const auto leading = static_cast<unsigned>(leading_bytes(columns) / 16);
    constexpr std::uint64_t stride = stride_bytes / 16;
    return (address >> 4 | leading << 16) | stride << 32;  // an address has 18 bits
}

template <typename T>
__device__ float widened(std::uint16_t bits) {
    if constexpr (std::is_same_v<T, __half>)
        return __half2float(__ushort_as_half(bits));
    else
        return __bfloat162float(__ushort_as_bfloat16(bits));
}
template <typename T>
__device__ std::uint16_t rounded(float value) {
    if constexpr (std::is_same_v<T, __half>)
        return __half_as_ushort(__float2half_rn(value));
    else
        return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

constexpr float log2_e = 1.44269504f;
/// 2^min(x, 40), so that a product of three is finite. NaN stays NaN.
__device__ inline float bounded_power(float x) {
    float power;
    asm("min.NaN.f32 %0, %1, 0f42200000;" : "=f"(power) : "f"(x));  // 40
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(power));
    return power;
}
__device__ inline float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// Returns h and updates c, given the sums of the gates i, f, g, o. Sigmoids 1 / (1 + e^-x) and tanh
/// (1 - e^-2x) / (1 + e^-2x) share one denominator for c and one for h. That takes five exponentials and two
/// reciprocals instead of five and five; an SM does 16 of either per cycle.
__device__ inline float lstm_cell(const float (&gate)[4], float& c) {
    const float i = 1 + bounded_power(-log2_e * gate[0]), f = 1 + bounded_power(-log2_e * gate[1]);
    const float g = bounded_power(-2 * log2_e * gate[2]), o = 1 + bounded_power(-log2_e * gate[3]);
    const float both = i * (1 + g);
    c = (c * both + (1 - g) * f) * reciprocal(both * f);
    const float e = bounded_power(-2 * log2_e * c);
    return (1 - e) * reciprocal(o * (1 + e));
}

__device__ inline float sigmoid(float x) { return reciprocal(1 + bounded_power(-log2_e * x)); }
__device__ inline float hyperbolic_tangent(float x) {
    const float e = bounded_power(-2 * log2_e * x);
    return (1 - e) * reciprocal(1 + e);
}
/// Saves the gates i, f, g, o and c of a unit for the backward, in row `row` of [rows, 4 hidden] and [rows, hidden]; 0
/// where there is no step. It comes after h is stored, because other blocks wait for h.
template <typename T>
__device__ void save(const PersistentDirection& to, std::int64_t row, int hidden, int unit, const float (&gate)[4],
                     float c, bool runs) {
    const float left[] = {sigmoid(gate[0]), sigmoid(gate[1]), hyperbolic_tangent(gate[2]), sigmoid(gate[3])};
    auto* const gates = static_cast<std::uint16_t*>(to.gates) + row * 4 * hidden + unit;
#pragma unroll
    for (int g = 0; g < 4; ++g) gates[g * hidden] = runs ? rounded<T>(left[g]) : std::uint16_t{0};
    static_cast<std::uint16_t*>(to.cells)[row * hidden + unit] = runs ? rounded<T>(c) : std::uint16_t{0};
}

}  // namespace kbench::cuda::persistent
