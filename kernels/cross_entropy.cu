// Softmax with cross-entropy, one block a row. Bound by memory: maximum and sum are found in one pass over the row
// (online softmax, Milakov and Gimelshein, 2018), which leaves it in shared memory for the gradient.
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "kernels/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/row.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int most_threads = 1024;
/// Vectors that a thread asks for before it works on the first: 64 KB in flight with 1024 threads on an SM, where 30
/// would cover DRAM's latency.
constexpr int ahead = 4;

/// e^x for x <= 0 by ex2.approx, 2 ulp: an exponential of each logit in both passes keeps the special function units
/// busy for two thirds of the time that DRAM takes; anything slower than one instruction would bound the kernel.
__device__ inline float exponential(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896340736f));
    return y;
}
__device__ inline double exponential(double x) { return exp(x); }

/// The larger of a maximum and a value; a NaN is left to the sum.
template <typename A>
__device__ A larger(A maximum, A value) {
    return value > maximum ? value : maximum;
}

/// Maximum of some logits and the sum of their exponentials relative to it. The maximum begins as a finite number: a
/// logit of -infinity then adds 0 to the sum.
template <typename A>
struct Online {
    A maximum = std::numeric_limits<A>::lowest(), sum = 0;

    template <int N>
    __device__ void add(const A (&logits)[N]) {
        A largest = maximum;
#pragma unroll
        for (int i = 0; i < N; ++i) largest = larger(largest, logits[i]);
        if (largest > maximum) {
            sum *= exponential(maximum - largest);
            maximum = largest;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) sum += exponential(logits[i] - maximum);
    }
};

/// How a row of `vocab` elements lies: whole vectors from the first 16-byte boundary on, and up to 2 (N - 1) elements
/// in front of and behind them, of which a thread takes one at the most.
template <int N>
struct Split {
    int head, vectors, edges;
    std::int64_t behind;

    template <typename T>
    __device__ Split(const T* row, std::int64_t vocab) {
        const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(row) % 16);
        head = static_cast<int>(min(static_cast<std::int64_t>((16 - past) % 16 / sizeof(T)), vocab));
        vectors = static_cast<int>((vocab - head) / N);
        behind = head + std::int64_t{vectors} * N;
        edges = head + static_cast<int>(vocab - behind);
    }
    /// Of edge element `i` < edges.
    __device__ std::int64_t column(int i) const { return i < head ? i : behind + (i - head); }
};

/// Zeros in columns [first, last) of a row.
template <typename T>
__device__ void clear(T* row, std::int64_t first, std::int64_t last) {
    constexpr int N = vector_width<T>;
    const Split<N> split(row + first, last - first);
    Vector<T, N> zeros;
#pragma unroll
    for (int i = 0; i < N; ++i) zeros.elements[i] = static_cast<T>(0.0f);
    T* begin = row + first;
    for (int i = static_cast<int>(threadIdx.x); i < split.vectors; i += static_cast<int>(blockDim.x))
        zeros.store(begin + split.head + std::int64_t{i} * N);
    if (static_cast<int>(threadIdx.x) < split.edges)
        begin[split.column(static_cast<int>(threadIdx.x))] = zeros.elements[0];
}

template <typename T, int N>
__device__ void widen(const Vector<T, N>& stored, Arithmetic<T> (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = static_cast<Arithmetic<T>>(stored.elements[i]);
}

/// `kept` says whether dynamic shared memory holds the vectors of a row; else the gradient reads them again. A thread
/// reads back what it has written itself, there and in the logits.
template <typename T, bool gradient, bool kept>
__global__ void __launch_bounds__(most_threads)
    cross_entropy_kernel(std::conditional_t<gradient, T*, const T*> logits, const std::int32_t* __restrict__ tokens,
                         const Arithmetic<T>* __restrict__ loss_scale, Arithmetic<T>* __restrict__ losses,
                         std::int64_t seq, std::int64_t vocab, std::int64_t stride, std::int64_t targets) {
    using A = Arithmetic<T>;
    constexpr int N = vector_width<T>;
    using Stored = Vector<T, N>;
    extern __shared__ uint4 row_in_smem[];
    __shared__ A scratch[2][32];
    const std::int64_t row = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    auto* const line = logits + row * stride;
    if (row % seq + 1 == seq) {
        if (thread == 0) losses[row] = 0;
        if constexpr (gradient) clear(line, 0, stride);
        return;
    }
    const std::int64_t target = tokens[row + 1];
    const A at_target = static_cast<A>(line[target]);  // read before the barriers that every write comes after
    const Split<N> split(line, vocab);
    auto* const body = line + split.head;
    T* const smem = reinterpret_cast<T*>(row_in_smem);

    Online<A> online;
    for (int first = thread; first < split.vectors; first += ahead * threads) {
        Stored stored[ahead];
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
            const int i = first + j * threads;
            if (i < split.vectors) stored[j] = Stored::load_once(body + std::int64_t{i} * N);
        }
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
            const int i = first + j * threads;
            if (i >= split.vectors) continue;
            if constexpr (kept) stored[j].store(smem + i * N);
            A values[N];
            widen(stored[j], values);
            online.add(values);
        }
    }
    A edge[1] = {};
    if (thread < split.edges) {
        edge[0] = static_cast<A>(line[split.column(thread)]);
        online.add(edge);
    }
    const A maximum = reduce_row(
        online.maximum, std::numeric_limits<A>::lowest(), [](A a, A b) { return larger(a, b); }, scratch[0]);
    const A sum = sum_row(online.sum * exponential(online.maximum - maximum), scratch[1]);
    if (thread == 0) losses[row] = log(sum) + (maximum - at_target);

    if constexpr (gradient) {
        const A scale = *loss_scale / static_cast<A>(targets), times = scale / sum;
        const std::int64_t target_in_body = target - split.head;  // negative in front of it
        for (int i = thread; i < split.vectors; i += threads) {
            Stored stored = kept ? Stored::load(smem + i * N) : Stored::load_once(body + std::int64_t{i} * N);
            A values[N];
            widen(stored, values);
#pragma unroll
            for (int j = 0; j < N; ++j) {
                values[j] = exponential(values[j] - maximum) * times;
                if (std::int64_t{i} * N + j == target_in_body) values[j] -= scale;
                stored.elements[j] = static_cast<T>(values[j]);
            }
            stored.store(body + std::int64_t{i} * N);
        }
        if (thread < split.edges) {
            const std::int64_t column = split.column(thread);
            const A p = exponential(edge[0] - maximum) * times;
            line[column] = static_cast<T>(column == target ? p - scale : p);
        }
        clear(line, vocab, stride);
    }
}

/// Shared memory that a block may have on this device besides what the kernel has of its own, and that of an SM.
struct SharedMemory {
    std::int64_t of_block, of_sm;

    SharedMemory() {
        constexpr int reserved = 1024 + 1024;  // a KB of each block is the system's, and scratch is less than another
        int device = 0, block = 0, sm = 0;
        KBENCH_CUDA(cudaGetDevice(&device));
        KBENCH_CUDA(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        KBENCH_CUDA(cudaDeviceGetAttribute(&sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
        of_block = block - reserved / 2;
        of_sm = sm / 2 - reserved;
    }
};

/// Threads for a row: two warps at least, since a row of one would have no barrier; and all that keep DRAM busy where a
/// row in shared memory leaves no room for a second block. Forward has as many, and so losses of the same bits.
template <typename T>
unsigned threads_for(std::int64_t vocab, const SharedMemory& limit) {
    const std::int64_t vectors = divide_up(vocab, vector_width<T>), bytes = vectors * 16;
    const bool alone = bytes > limit.of_sm && bytes <= limit.of_block;
    return static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(vectors, 32) * 32, 64, alone ? most_threads : 512));
}

}  // namespace

void cross_entropy_forward(DataType type, const CrossEntropy& op, std::int64_t stride, const void* logits,
                           const std::int32_t* tokens, void* losses, cudaStream_t stream) {
    const SharedMemory limit;
    dispatch(type, [&]<typename T>() {
        cross_entropy_kernel<T, false, false>
            <<<static_cast<unsigned>(op.rows), threads_for<T>(op.vocab, limit), 0, stream>>>(
                static_cast<const T*>(logits), tokens, nullptr, static_cast<Arithmetic<T>*>(losses), op.seq, op.vocab,
                stride, op.targets());
    });
    KBENCH_CUDA_LAUNCHED("cross_entropy_kernel");
}

void cross_entropy_gradient(DataType type, const CrossEntropy& op, std::int64_t stride, void* logits,
                            const std::int32_t* tokens, const void* loss_scale, void* losses, cudaStream_t stream) {
    const SharedMemory limit;
    dispatch(type, [&]<typename T>() {
        const std::int64_t bytes = divide_up(op.vocab, vector_width<T>) * 16;
        const auto launch = [&](auto* kernel, std::int64_t smem) {
            kernel<<<static_cast<unsigned>(op.rows), threads_for<T>(op.vocab, limit), static_cast<std::size_t>(smem),
                     stream>>>(static_cast<T*>(logits), tokens, static_cast<const Arithmetic<T>*>(loss_scale),
                               static_cast<Arithmetic<T>*>(losses), op.seq, op.vocab, stride, op.targets());
        };
        if (bytes > limit.of_block) return launch(&cross_entropy_kernel<T, true, false>, 0);
        auto* const kernel = &cross_entropy_kernel<T, true, true>;
        // Whatever the row: two threads may launch rows of different length at a time.
        KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(limit.of_block)));
        launch(kernel, bytes);
    });
    KBENCH_CUDA_LAUNCHED("cross_entropy_kernel");
}

}  // namespace kbench::cuda
