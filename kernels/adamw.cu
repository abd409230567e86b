// AdamW over all tensors in one launch. Bound by memory: each array is read once and written once.
#include <cuda_runtime.h>

#include "kernels/adamw.h"
#include "kernels/check.h"
#include "kernels/tensor_table.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

// Approximate instructions: with correct rounding an element takes 40 instructions, which take half as long as moving
// its 14 bytes (bf16).
__device__ inline float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double root(double x) { return sqrt(x); }
__device__ inline float quotient(float x, float y) { return __fdividef(x, y); }
__device__ inline double quotient(double x, double y) { return x / y; }

/// Factors of one step, the same for every element.
template <typename A>
struct Factors {
    A multiplier;  ///< 0: the step is skipped
    A beta1, beta2, keep;
    A step;         ///< lr / (1 - beta1^t)
    A root_factor;  ///< 1 / sqrt(1 - beta2^t)
    A epsilon;

    /// `norm` is null without clipping.
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

/// Threads per block; a thread updates one vector of each array. 774 million bf16 weights on an H200 take 2.57 ms; two
/// vectors in turn 2.59; four with twice the threads 2.67; two at once, marked for L2 to evict first, 2.74.
constexpr int threads = 128;
/// Elements in a vector of the widest array: next to fp32 state, 16-bit weights take 8 bytes at a time.
template <typename S>
inline constexpr int width = vector_width<S>;
template <bool has_master, typename S>
using Tensors = TensorTable<has_master ? 5 : 4, threads * width<S>>;

/// Updates N elements from `i` on. S is the type of m and v, and of the master copy where there is one.
template <bool has_master, int N, typename T, typename S, typename A>
__device__ void update(const Factors<A>& f, std::int64_t i, T* weight, const T* gradient, S* m, S* v, S* master) {
    const auto gradients = Vector<T, N>::load_once(gradient + i);
    auto first = Vector<S, N>::load_once(m + i), second = Vector<S, N>::load_once(v + i);
    Vector<S, N> masters;
    Vector<T, N> weights;
    A g[N], w[N], m_before[N], v_before[N];
    if constexpr (has_master) {
        masters = Vector<S, N>::load_once(master + i);
        widen(masters, w);
    } else {
        weights = Vector<T, N>::load_once(weight + i);
        widen(weights, w);
    }
    widen(gradients, g);
    widen(first, m_before);
    widen(second, v_before);
#pragma unroll
    for (int j = 0; j < N; ++j) {
        g[j] *= f.multiplier;
        const A m_now = f.beta1 * m_before[j] + (1 - f.beta1) * g[j];
        const A v_now = f.beta2 * v_before[j] + (1 - f.beta2) * g[j] * g[j];
        w[j] = w[j] * f.keep - quotient(f.step * m_now, root(v_now) * f.root_factor + f.epsilon);
        first.elements[j] = static_cast<S>(m_now);
        second.elements[j] = static_cast<S>(v_now);
        if constexpr (has_master) masters.elements[j] = static_cast<S>(w[j]);
        weights.elements[j] = static_cast<T>(w[j]);
    }
    first.store(m + i);
    second.store(v + i);
    if constexpr (has_master) masters.store(master + i);
    weights.store(weight + i);
}

template <bool has_master, typename T, typename S>
__global__ void __launch_bounds__(threads)
    adamw_kernel(const __grid_constant__ Tensors<has_master, S> table, const Arithmetic<T>* __restrict__ schedule,
                 const Arithmetic<T>* __restrict__ norm) {
    using A = Arithmetic<T>;
    constexpr int N = width<S>, chunk = threads * N;
    const Factors<A> factors(schedule, norm);
    if (factors.multiplier == 0) return;
    const int block = static_cast<int>(blockIdx.x), tensor = table.tensor_of(block);
    T* const weight = static_cast<T*>(table.pointers[0][tensor]);
    const T* const gradient = static_cast<const T*>(table.pointers[1][tensor]);
    S* const m = static_cast<S*>(table.pointers[2][tensor]);
    S* const v = static_cast<S*>(table.pointers[3][tensor]);
    S* master = nullptr;
    if constexpr (has_master) master = static_cast<S*>(table.pointers[4][tensor]);
    const std::int64_t begin = std::int64_t{block - table.first_chunk[tensor]} * chunk;
    const std::int64_t end = min(table.sizes[tensor], begin + chunk);
    if (end - begin == chunk && table.is_aligned(tensor))
        return update<has_master, N>(factors, begin + std::int64_t{threadIdx.x} * N, weight, gradient, m, v, master);
    for (std::int64_t i = begin + threadIdx.x; i < end; i += threads)
        update<has_master, 1>(factors, i, weight, gradient, m, v, master);
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
    using Table = Tensors<has_master, S>;
    for_tensor_tables<arrays, Table::chunk>(op.sizes, pointer, [&](const Table& table) {
        adamw_kernel<has_master, T, S>
            <<<static_cast<unsigned>(table.chunks), threads, 0, stream>>>(table, schedule, norm);
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
