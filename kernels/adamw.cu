// AdamW over all tensors in one launch. Bound by memory: each array is read once and written once.
#include <cuda_runtime.h>

#include "kernels/adamw.h"
#include "kernels/check.h"
#include "kernels/tensor_table.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

// The instructions that approximate: with correct rounding an element takes 40 instructions, half of the time that its
// 14 bytes (bf16) take.
__device__ inline float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double root(double x) { return sqrt(x); }
__device__ inline float quotient(float x, float y) { return __fdividef(x, y); }
__device__ inline double quotient(double x, double y) { return x / y; }

/// What a step does to every element.
template <typename A>
struct Factors {
    A multiplier;  ///< 0: the step is skipped
    A beta1, beta2, keep;
    A step;         ///< lr / (1 - beta1^t)
    A root_factor;  ///< 1 / sqrt(1 - beta2^t)
    A epsilon;

    /// `norm` is null where nothing is clipped.
    __device__ Factors(const A* __restrict__ schedule, const A* __restrict__ norm)
        : multiplier(schedule[7]),
          beta1(schedule[1]),
          beta2(schedule[2]),
          keep(1 - schedule[0] * schedule[4]),
          step(schedule[0] / schedule[5]),
          root_factor(1 / sqrt(schedule[6])),
          epsilon(schedule[3]) {
        if (norm != nullptr) {
            const A max_norm = schedule[8], length = *norm;
            if (max_norm > 0) {
                const A part = max_norm / (abs(multiplier) * length + static_cast<A>(AdamW::clip_epsilon));
                if (part < 1) multiplier *= part;
            }
            if (!isfinite(length)) multiplier = 0;
        }
        if (!isfinite(multiplier)) multiplier = 0;
    }
};

/// Vectors of each array that a thread asks for before it works on the first.
constexpr int vectors_at_once = 2;
/// Whether L2 is told to drop first what passes through: each array is far larger and is not read again in the step.
constexpr bool streams = true;

template <typename T, int N>
__device__ Vector<T, N> load(const T* address) {
    if constexpr (!streams) return Vector<T, N>::load_once(address);
    using Bits = typename Vector<T, N>::Bits;
    const Bits bits = __ldcs(reinterpret_cast<const Bits*>(address));
    Vector<T, N> vector;
    static_assert(sizeof vector == sizeof bits);
    memcpy(vector.elements, &bits, sizeof bits);
    return vector;
}
template <typename T, int N>
__device__ void store(T* address, const Vector<T, N>& vector) {
    if constexpr (!streams) return vector.store(address);
    typename Vector<T, N>::Bits bits;
    memcpy(&bits, vector.elements, sizeof bits);
    __stcs(reinterpret_cast<decltype(bits)*>(address), bits);
}

/// `count` times N elements, the first from `i` on, the others `between` elements apart. S stores m and v, and the
/// master where there is one.
template <bool has_master, int N, int count, typename T, typename S, typename A>
__device__ void update(const Factors<A>& f, std::int64_t i, int between, T* weight, const T* gradient, S* m, S* v,
                       S* master) {
    Vector<T, N> gradients[count], weights[count];
    Vector<S, N> first[count], second[count], masters[count];
#pragma unroll
    for (int c = 0; c < count; ++c) {
        const std::int64_t at = i + c * between;
        gradients[c] = load<T, N>(gradient + at);
        first[c] = load<S, N>(m + at);
        second[c] = load<S, N>(v + at);
        if constexpr (has_master)
            masters[c] = load<S, N>(master + at);
        else
            weights[c] = load<T, N>(weight + at);
    }
#pragma unroll
    for (int c = 0; c < count; ++c) {
        const std::int64_t at = i + c * between;
        A g[N], w[N], m_before[N], v_before[N];
        widen(gradients[c], g);
        widen(first[c], m_before);
        widen(second[c], v_before);
        if constexpr (has_master)
            widen(masters[c], w);
        else
            widen(weights[c], w);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            g[j] *= f.multiplier;
            const A m_now = f.beta1 * m_before[j] + (1 - f.beta1) * g[j];
            const A v_now = f.beta2 * v_before[j] + (1 - f.beta2) * g[j] * g[j];
            w[j] = w[j] * f.keep - quotient(f.step * m_now, root(v_now) * f.root_factor + f.epsilon);
            first[c].elements[j] = static_cast<S>(m_now);
            second[c].elements[j] = static_cast<S>(v_now);
            if constexpr (has_master) masters[c].elements[j] = static_cast<S>(w[j]);
            weights[c].elements[j] = static_cast<T>(w[j]);
        }
        store(m + at, first[c]);
        store(v + at, second[c]);
        if constexpr (has_master) store(master + at, masters[c]);
        store(weight + at, weights[c]);
    }
}

template <bool has_master, typename T, typename S>
__global__ void __launch_bounds__(tensor_threads)
    adamw_kernel(const __grid_constant__ TensorTable<has_master ? 5 : 4> table,
                 const Arithmetic<T>* __restrict__ schedule, const Arithmetic<T>* __restrict__ norm) {
    using A = Arithmetic<T>;
    constexpr int N = vector_width<S>;  // of the widest array: 16-bit weights beside fp32 state take 8 bytes at a time
    const Factors<A> factors(schedule, norm);
    if (factors.multiplier == 0) return;
    const int block = static_cast<int>(blockIdx.x), tensor = table.tensor_of(block);
    T* const weight = static_cast<T*>(table.pointers[0][tensor]);
    const T* const gradient = static_cast<const T*>(table.pointers[1][tensor]);
    S* const m = static_cast<S*>(table.pointers[2][tensor]);
    S* const v = static_cast<S*>(table.pointers[3][tensor]);
    S* master = nullptr;
    if constexpr (has_master) master = static_cast<S*>(table.pointers[4][tensor]);
    const std::int64_t begin = std::int64_t{block - table.first_chunk[tensor]} * tensor_chunk;
    const std::int64_t end = min(table.sizes[tensor], begin + tensor_chunk);
    const std::int64_t whole = table.is_aligned(tensor) ? begin + (end - begin) / N * N : begin;
    constexpr int between = tensor_threads * N;
    std::int64_t i = begin + std::int64_t{threadIdx.x} * N;
    for (; i + (vectors_at_once - 1) * between < whole; i += vectors_at_once * between)
        update<has_master, N, vectors_at_once>(factors, i, between, weight, gradient, m, v, master);
    for (; i < whole; i += between) update<has_master, N, 1>(factors, i, between, weight, gradient, m, v, master);
    for (i = whole + threadIdx.x; i < end; i += tensor_threads)
        update<has_master, 1, 1>(factors, i, between, weight, gradient, m, v, master);
}

template <bool has_master, typename T, typename S>
void launch(const AdamW& op, std::span<void* const> operands, cudaStream_t stream) {
    using A = Arithmetic<T>;
    constexpr int arrays = has_master ? 5 : 4;
    const auto* schedule = static_cast<const A*>(operands[0]);
    const A* norm = op.clips ? static_cast<const A*>(operands[1]) : nullptr;
    const auto pointer = [&](std::size_t tensor, int array) {
        return operands[op.first_operand() + tensor * arrays + static_cast<std::size_t>(array)];
    };
    for_tensor_tables<arrays>(op.sizes, pointer, [&](const TensorTable<arrays>& table) {
        adamw_kernel<has_master, T, S>
            <<<static_cast<unsigned>(table.chunks), tensor_threads, 0, stream>>>(table, schedule, norm);
        KBENCH_CUDA_LAUNCHED("adamw_kernel");
    });
}

}  // namespace

void adamw(DataType type, const AdamW& op, std::span<void* const> operands, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        if (op.master)
            launch<true, T, Arithmetic<T>>(op, operands, stream);
        else
            launch<false, T, T>(op, operands, stream);
    });
}

}  // namespace kbench::cuda
