// The kernel of the persistent LSTM: see persistent.h for what it does. Compiled for sm_90a only (CMakeLists.txt).
//
// A step of a block: its four warpgroups wait for their quarter of h[t - 1] and multiply it with their quarter of the
// weights; their sums meet in shared memory; 16 threads a sequence turn them into c, which they keep, and h, which goes
// to all blocks of the direction. No barrier holds all blocks: a warpgroup waits for the 16 blocks of its quarter, and
// directions never wait for each other.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/recurrent/persistent_kernel.h"
#include "kernels/recurrent/persistent_layout.h"

namespace kbench::cuda::persistent {

/// Ends the kernel with an error where something has been waited for too long: a launch that hangs takes the device
/// with it.
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

/// What the tensor cores and bulk copies touch next, in shared and global memory, is ordered behind what came before.
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
/// Started where it stands, and waited for where it is used.
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
    /// By one thread; sizes and addresses are multiples of 16 bytes.
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

/// Cycles of the phases of a step, by one thread; nothing where the variant has no clocks.
template <bool present>
class PhaseClock {
  public:
    __device__ void start() {
        if constexpr (present) last_ = clock64();
    }
    __device__ void end(PersistentPhase phase) {
        if constexpr (present) {
            const long long now = clock64();
            sums_[static_cast<int>(phase)] += static_cast<std::uint64_t>(now - last_);
            last_ = now;
        }
    }
    __device__ void write(std::uint64_t* to) const {
        if constexpr (present)
            for (int i = 0; i < persistent_phases; ++i) to[i] = sums_[i];
    }

  private:
    long long last_ = 0;
    std::uint64_t sums_[present ? persistent_phases : 1] = {};
};

#define KBENCH_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define KBENCH_SUMS_8(d, i) KBENCH_SUMS_4(d, i), KBENCH_SUMS_4(d, i + 4)
#define KBENCH_SUMS_16(d, i) KBENCH_SUMS_8(d, i), KBENCH_SUMS_8(d, i + 8)
// d = a b (add 0) or d += a b (add 1); ones: the signs of a and b; zero: b lies along k.
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

/// PTX's matrix descriptor: address, bytes to the next core matrix along k and along n, all in 16 bytes; no swizzle.
__device__ inline std::uint64_t descriptor(const void* smem, int columns) {
    const std::uint64_t address = (shared_address(smem) & 0x3ffff) >> 4;
    const auto leading = static_cast<std::uint64_t>(leading_bytes(columns) / 16);
    constexpr std::uint64_t stride = stride_bytes / 16;
    return address | leading << 16 | stride << 32;
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

// Both by one exponential and one reciprocal; their limits are right at infinities, and a NaN remains one.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ inline float hyperbolic_tangent(float x) { return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x)); }

template <typename T, int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant>
__global__ __launch_bounds__(threads, 1) void persistent_lstm_kernel(const __grid_constant__ Arguments arguments) {
    constexpr bool polled = exchange == PersistentExchange::polled;
    constexpr bool waits = variant != PersistentVariant::no_wait;
    constexpr int quarter = k_steps * depth * columns;  // elements of h
    constexpr int slots = polled ? polled_slots : counted_slots;
    constexpr int cells = columns * units > threads ? columns * units / threads : 1;  // of a thread
    constexpr int columns_at_once = threads / units;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ CopyBarrier copied[warpgroups];
    auto* const h_shared = reinterpret_cast<std::uint16_t*>(memory);
    auto* const sums_shared = reinterpret_cast<float*>(memory + warpgroups * quarter * 2);

    const int hidden = arguments.hidden, batch = arguments.batch, blocks = hidden / units;
    const int direction = arguments.first_direction + static_cast<int>(blockIdx.x) / blocks;
    const int block = static_cast<int>(blockIdx.x) % blocks;
    const bool reverse = direction == 1;
    const PersistentDirection& operands = arguments.directions[direction];
    const int thread = static_cast<int>(threadIdx.x);
    const int warpgroup = thread / warpgroup_threads, in_warpgroup = thread % warpgroup_threads;
    const int warp = in_warpgroup / 32, lane = thread % 32;

    // Sequences end at hidden, the last quarters may be shorter or empty: zeros take part in their products, and for h
    // before the first step.
    for (int i = thread; i < warpgroups * quarter / 8; i += threads)
        reinterpret_cast<uint4*>(h_shared)[i] = make_uint4(0, 0, 0, 0);
    if (thread == 0)
        for (CopyBarrier& barrier : copied) barrier.init();
    fence_async();
    __syncthreads();

    // The weights, for all steps.
    std::uint32_t a[k_steps][4];
    const auto* weight = static_cast<const std::uint16_t*>(operands.weight_hh);
#pragma unroll
    for (int s = 0; s < k_steps; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = warp * 16 + fragment_row(lane, i);
            const int k = (warpgroup * k_steps + s) * depth + fragment_column(lane, i);
            const std::int64_t at =
                (static_cast<std::int64_t>(gate_of(row)) * hidden + block * units + unit_of(row)) * hidden + k;
            a[s][i] = k < hidden ? *reinterpret_cast<const std::uint32_t*>(weight + at) : 0;
        }

    // The cells of this thread: one unit of up to two sequences.
    const int unit = thread % units, first_column = thread / units;
    const bool has_cell = first_column < columns;  // whole warps have
    const int global_unit = block * units + unit;
    int length[cells], last = 0;
    float c[cells], bias[4];
#pragma unroll
    for (int i = 0; i < cells; ++i) {
        length[i] = 0;
        c[i] = 0;
    }
    for (int n = 0; n < batch; ++n) {
        const auto steps = static_cast<int>(
            steps_of(arguments.lengths[n], arguments.frames_per_step, static_cast<std::int64_t>(arguments.steps)));
        last = max(last, steps);
#pragma unroll
        for (int i = 0; i < cells; ++i)
            if (n == first_column + i * columns_at_once) length[i] = steps;
    }
#pragma unroll
    for (int g = 0; g < 4; ++g) {
        const int at = g * hidden + global_unit;
        bias[g] = widened<T>(static_cast<const std::uint16_t*>(operands.bias_ih)[at]) +
                  widened<T>(static_cast<const std::uint16_t*>(operands.bias_hh)[at]);
    }

    // Producers of this warpgroup's quarter, and what they make.
    const int producers = max(0, min(k_steps, blocks - warpgroup * k_steps));
    const std::size_t slot_bytes = static_cast<std::size_t>(hidden) * columns * 2;
    unsigned char* const h_global = arguments.h[direction];
    std::uint16_t* const h_quarter = h_shared + warpgroup * quarter;
    const std::uint64_t b = descriptor(h_quarter, columns);
    const auto counter_of = [&](int of) {
        return arguments.counters + (direction * warpgroups + of) * (counter_bytes / 4);
    };

    PhaseClock<variant == PersistentVariant::clocks> clock;
    clock.start();
#pragma unroll 1
    for (int step = 0; step < last; ++step) {
        // What the input adds to the gates: asked for a microsecond before it is needed.
        std::uint16_t x[cells][4];
#pragma unroll
        for (int i = 0; i < cells; ++i) {
            const int column = first_column + i * columns_at_once;
            const int t = reverse ? length[i] - 1 - step : step;
            const auto* row = static_cast<const std::uint16_t*>(operands.gates_x) +
                              (static_cast<std::int64_t>(t) * batch + column) * (4 * hidden) + global_unit;
#pragma unroll
            for (int g = 0; g < 4; ++g)
                x[i][g] = variant != PersistentVariant::no_gates && step < length[i] ? load_once(row + g * hidden) : 0;
        }

        if (step > 0 && producers > 0) {
            const unsigned char* from = h_global + (step - 1) % slots * slot_bytes + warpgroup * quarter * 2;
            if constexpr (polled) {
                constexpr int pieces = (quarter / 8 + warpgroup_threads - 1) / warpgroup_threads;
                const int present = producers * units * columns / 8;
                uint4 v[pieces];
                const auto is_missing = [](const uint4& piece) {
                    // A word is written at once, so that half a word never is missing alone.
                    return piece.x == missing || piece.y == missing || piece.z == missing || piece.w == missing;
                };
#pragma unroll
                for (int i = 0; i < pieces; ++i) {
                    const int at = in_warpgroup + i * warpgroup_threads;
                    v[i] = make_uint4(0, 0, 0, 0);
                    if (at < present) v[i] = load_relaxed(reinterpret_cast<const uint4*>(from) + at);
                }
                if constexpr (waits) {
                    Patience patience;
                    for (bool again = true; again; patience.wait()) {
                        again = false;
#pragma unroll
                        for (int i = 0; i < pieces; ++i)
                            if (is_missing(v[i])) {
                                again = true;
                                v[i] = load_relaxed(reinterpret_cast<const uint4*>(from) + in_warpgroup +
                                                    i * warpgroup_threads);
                            }
                    }
                }
                clock.end(PersistentPhase::wait);
#pragma unroll
                for (int i = 0; i < pieces; ++i) {
                    const int at = in_warpgroup + i * warpgroup_threads;
                    if (at < present) reinterpret_cast<uint4*>(h_quarter)[at] = v[i];
                }
                fence_async_shared();
                asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"(warpgroup_threads) : "memory");
            } else {
                if (in_warpgroup == 0) {
                    const std::uint32_t* counter = counter_of(warpgroup);
                    const auto all = static_cast<std::uint32_t>(producers * step);
                    Patience patience;
                    if constexpr (waits)
                        while (acquire(counter) < all) patience.wait();
                    clock.end(PersistentPhase::wait);
                    fence_async();
                    copied[warpgroup].copy(h_quarter, from, static_cast<unsigned>(producers * units * columns * 2));
                }
                Patience patience;
                while (!copied[warpgroup].is_past(static_cast<unsigned>(step - 1) % 2)) patience.wait();
            }
        }
        clock.end(PersistentPhase::load);

        float d[columns / 2];
        if constexpr (variant == PersistentVariant::no_product) {
#pragma unroll
            for (float& sum : d) sum = 0;
        } else {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int s = 0; s < k_steps; ++s) {
                const std::uint64_t at = b + static_cast<std::uint64_t>(s * 2 * leading_bytes(columns) / 16);
                if (s == 0)
                    multiply<T, columns, 0>(d, a[s], at);
                else
                    multiply<T, columns, 1>(d, a[s], at);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (float& sum : d) asm volatile("" : "+f"(sum)::"memory");
        }
        clock.end(PersistentPhase::product);

        float* const sums = sums_shared + (polled ? step % 2 : 0) * (warpgroups * columns * sums_stride);
        float* const own = sums + warpgroup * columns * sums_stride;
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) own[sum_offset(warp * 16 + sum_row(lane, i), sum_column(lane, i))] = d[i];
        __syncthreads();  // also: all of h[step - 1] is read, and no product reads shared memory any more
        clock.end(PersistentPhase::sums);

        if (has_cell) {
#pragma unroll
            for (int i = 0; i < cells; ++i) {
                const int column = first_column + i * columns_at_once;
                float gate[4];
#pragma unroll
                for (int g = 0; g < 4; ++g) gate[g] = widened<T>(x[i][g]) + bias[g];
#pragma unroll
                for (int w = 0; w < warpgroups; ++w) {
                    const float4 part = *reinterpret_cast<const float4*>(sums + w * columns * sums_stride +
                                                                         sum_offset(row_of(unit, 0), column));
                    gate[0] += part.x;
                    gate[1] += part.y;
                    gate[2] += part.z;
                    gate[3] += part.w;
                }
                std::uint32_t h = 0;  // behind a sequence's end, and where there is no sequence
                if (step < length[i]) {
                    if constexpr (variant == PersistentVariant::no_cell) {
                        h = rounded<T>(gate[0] + gate[1] + gate[2] + gate[3]);
                    } else {
                        c[i] = sigmoid(gate[1]) * c[i] + sigmoid(gate[0]) * hyperbolic_tangent(gate[2]);
                        h = rounded<T>(sigmoid(gate[3]) * hyperbolic_tangent(c[i]));
                    }
                }
                const std::uint32_t pair = h | __shfl_down_sync(0xffffffff, h, 1) << 16;
                const std::size_t at = static_cast<std::size_t>(h_offset(global_unit, column, columns)) * 2;
                if (unit % 2 == 0) {
                    store_relaxed(reinterpret_cast<std::uint32_t*>(h_global + step % slots * slot_bytes + at), pair);
                    // All blocks have written h[step - 1] (__syncthreads above), so that they have read h[step - 2].
                    if (polled && step >= 2)
                        store_relaxed(reinterpret_cast<std::uint32_t*>(h_global + (step - 2) % slots * slot_bytes + at),
                                      missing);
                }
                if (column < batch) {
                    const int t = reverse && step < length[i] ? length[i] - 1 - step : step;
                    static_cast<std::uint16_t*>(
                        operands.out)[(static_cast<std::int64_t>(t) * batch + column) * hidden + global_unit] =
                        static_cast<std::uint16_t>(h);
                }
            }
        }
        clock.end(PersistentPhase::cell);
        if constexpr (polled) {
            // A slot that was emptied in step t is read again in step t + 15. Between these two come a fence of who
            // emptied it, an h that it writes then, and a fence of the reader behind that: at the latest in steps
            // t + 3, t + 4 and t + 7.
            if (step % 4 == 3) fence_gpu();
        } else {
            __syncthreads();
            if (thread == 0) release_one(counter_of(block / k_steps));
        }
        clock.end(PersistentPhase::publish);
    }
    if (thread == 0) clock.write(arguments.clocks + (direction * blocks + block) * persistent_phases);

    // Steps in which every sequence has ended.
    if (has_cell)
        for (int t = last; t < arguments.steps; ++t)
            for (int column = first_column; column < batch; column += columns_at_once)
                static_cast<std::uint16_t*>(
                    operands.out)[(static_cast<std::int64_t>(t) * batch + column) * hidden + global_unit] = 0;
}

template <typename T, int k_steps, int columns, PersistentExchange exchange>
const void* kernel_of(PersistentVariant variant) {
    const auto address = [](auto kernel) { return reinterpret_cast<const void*>(kernel); };
    using enum PersistentVariant;
    if (variant == plain) return address(persistent_lstm_kernel<T, k_steps, columns, exchange, plain>);
    // The account is of DeepSpeech 2's size in fp16.
    if constexpr (std::is_same_v<T, __half> && k_steps == 16 && (columns == 8 || columns == 32)) switch (variant) {
            case plain: break;
            case clocks: return address(persistent_lstm_kernel<T, k_steps, columns, exchange, clocks>);
            case no_wait: return address(persistent_lstm_kernel<T, k_steps, columns, exchange, no_wait>);
            case no_product: return address(persistent_lstm_kernel<T, k_steps, columns, exchange, no_product>);
            case no_cell: return address(persistent_lstm_kernel<T, k_steps, columns, exchange, no_cell>);
            case no_gates: return address(persistent_lstm_kernel<T, k_steps, columns, exchange, no_gates>);
        }
    return nullptr;
}

template <typename T, int k_steps>
const void* kernel_of(int columns, PersistentExchange exchange, PersistentVariant variant) {
    using enum PersistentExchange;
    switch (columns) {
        case 8:
            return exchange == counted ? kernel_of<T, k_steps, 8, counted>(variant)
                                       : kernel_of<T, k_steps, 8, polled>(variant);
        case 16:
            return exchange == counted ? kernel_of<T, k_steps, 16, counted>(variant)
                                       : kernel_of<T, k_steps, 16, polled>(variant);
        case 32:
            return exchange == counted ? kernel_of<T, k_steps, 32, counted>(variant)
                                       : kernel_of<T, k_steps, 32, polled>(variant);
        case 64: return exchange == counted ? kernel_of<T, k_steps, 64, counted>(variant) : nullptr;
        default: return nullptr;
    }
}

template <typename T>
const void* kernel_of(int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant) {
    switch (k_steps) {
        case 4: return kernel_of<T, 4>(columns, exchange, variant);
        case 8: return kernel_of<T, 8>(columns, exchange, variant);
        case 16: return kernel_of<T, 16>(columns, exchange, variant);
        default: return nullptr;
    }
}

}  // namespace kbench::cuda::persistent
