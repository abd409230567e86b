// Clipping, masks and the transposition from images to sequences. All are bound by memory: each element is read once
// and written once, in accesses of up to 16 bytes, several of which each thread has in flight.
#include <cuda_runtime.h>

#include "kernels/check.h"
#include "kernels/segments.cuh"
#include "kernels/sequence.h"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads_per_block = 256;

template <typename T>
struct Clip {
    Arithmetic<T> low, high;

    __device__ Clip of(std::int64_t) const { return *this; }
    __device__ bool reads(std::int64_t) const { return true; }
    template <int N>
    __device__ void apply(Vector<T, N>& vector, std::int64_t) const {
        Arithmetic<T> values[N];
        widen(vector, values);
#pragma unroll
        for (int i = 0; i < N; ++i) {  // NaN stays NaN, because a comparison with it is false
            const Arithmetic<T> above = values[i] < low ? low : values[i];
            vector.elements[i] = static_cast<T>(above > high ? high : above);
        }
    }
};

template <typename T>
struct MaskSegments {
    const std::int32_t* lengths;
    std::int64_t rows_each, frames_per_step, steps;

    struct Segment {
        std::int64_t end;
        __device__ bool reads(std::int64_t position) const { return position < end; }
        template <int N>
        __device__ void apply(Vector<T, N>& vector, std::int64_t position) const {
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (position + i >= end) vector.elements[i] = T(0);
        }
    };
    __device__ Segment of(std::int64_t row) const {
        return {steps_of(lengths[row / rows_each], frames_per_step, steps)};
    }
};

/// Tiles of a transposition, 16 KB each. Rows are steps, columns 32 words of shared memory; a word is one element, or
/// two 16-bit features. A warp writes a row of 128 or 256 bytes at a time; one or half a warp reads a row of 256 or 512
/// bytes.
constexpr int tile_words = 32;
template <typename Bits>
using Word = std::conditional_t<sizeof(Bits) == 8, std::uint64_t, std::uint32_t>;
template <typename Bits>
inline constexpr int features_a_word = sizeof(Word<Bits>) / sizeof(Bits);
template <typename Bits>
inline constexpr int tile_steps = 16384 / (tile_words * sizeof(Word<Bits>));

/// A thread reads V steps of the features of one word at a time and stores them down a column. Words of a row are
/// rotated by its step, and once more after as many steps as there are banks. So a warp's words lie in different banks,
/// both when columns are stored and when rows are read.
template <typename Bits, int V>
__global__ void __launch_bounds__(threads_per_block)
    to_sequence_kernel(const Bits* __restrict__ x, Bits* __restrict__ out, std::int64_t batch, std::int64_t features,
                       std::int64_t steps, unsigned tiles_across, unsigned tiles_down, bool whole_words) {
    constexpr int pack = features_a_word<Bits>, rows = tile_steps<Bits>, lanes = rows / V;
    constexpr int reads = tile_words * lanes / threads_per_block;
    constexpr int banks = 128 / sizeof(Word<Bits>), again = V * banks > rows ? V * banks / rows : 1;
    static_assert(reads * threads_per_block == tile_words * lanes);
    __shared__ Word<Bits> tile[rows][tile_words];
    const auto place = [](int step, int word) { return (word + step + step / banks * again) % tile_words; };

    const std::int64_t n = blockIdx.x / tiles_across / tiles_down;
    const std::int64_t first_step = std::int64_t{blockIdx.x % tiles_across} * rows;
    const std::int64_t first_feature = std::int64_t{blockIdx.x / tiles_across % tiles_down} * (tile_words * pack);
    const auto at_most = [](std::int64_t left, int most) { return left < most ? static_cast<int>(left) : most; };
    const int steps_here = at_most(steps - first_step, rows);
    const int features_here = at_most(features - first_feature, tile_words * pack);

    const Bits* const from = x + (n * features + first_feature) * steps + first_step;
    Vector<Bits, V> read[reads][pack];
#pragma unroll
    for (int i = 0; i < reads; ++i) {
        const int index = i * threads_per_block + static_cast<int>(threadIdx.x);
        const int feature = index / lanes * pack, step = index % lanes * V;
#pragma unroll
        for (int p = 0; p < pack; ++p) {
            read[i][p] = {};
            if (feature + p < features_here && step < steps_here)  // V divides steps: a whole vector or nothing
                read[i][p] = Vector<Bits, V>::load_once(from + (feature + p) * steps + step);
        }
    }
#pragma unroll
    for (int i = 0; i < reads; ++i) {
        const int index = i * threads_per_block + static_cast<int>(threadIdx.x);
        const int word = index / lanes, step = index % lanes * V;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            Word<Bits> bits = read[i][0].elements[j];
            if constexpr (pack == 2) bits |= Word<Bits>{read[i][1].elements[j]} << 16;
            tile[step + j][place(step + j, word)] = bits;
        }
    }
    __syncthreads();

    constexpr int warps = threads_per_block / 32;
    const int word = static_cast<int>(threadIdx.x) % 32, feature = word * pack;
#pragma unroll 8
    for (int step = static_cast<int>(threadIdx.x) / 32; step < steps_here; step += warps) {
        const Word<Bits> bits = tile[step][place(step, word)];
        Bits* const to = out + ((first_step + step) * batch + n) * features + first_feature + feature;
        if (pack == 1 || whole_words) {
            if (feature < features_here) *reinterpret_cast<Word<Bits>*>(to) = bits;
        } else {
            if (feature < features_here) to[0] = static_cast<Bits>(bits);
            if (feature + 1 < features_here) to[1] = static_cast<Bits>(bits >> 16);
        }
    }
}

template <typename Bits>
void launch_to_sequence(const ToSequence& op, const void* x, void* out, cudaStream_t stream) {
    const auto steps_at_once = [&](int bytes) {
        const int elements = bytes / static_cast<int>(sizeof(Bits));
        return op.steps % elements == 0 && reinterpret_cast<std::uintptr_t>(x) % bytes == 0;
    };
    const auto launch = [&]<int V>() {
        constexpr int pack = features_a_word<Bits>;
        const std::int64_t across = divide_up(op.steps, tile_steps<Bits>);
        const std::int64_t down = divide_up(op.features, tile_words * pack);
        const bool whole_words =
            op.features % pack == 0 && reinterpret_cast<std::uintptr_t>(out) % sizeof(Word<Bits>) == 0;
        to_sequence_kernel<Bits, V><<<static_cast<unsigned>(across * down * op.batch), threads_per_block, 0, stream>>>(
            static_cast<const Bits*>(x), static_cast<Bits*>(out), op.batch, op.features, op.steps,
            static_cast<unsigned>(across), static_cast<unsigned>(down), whole_words);
    };
    constexpr int widest = 16 / sizeof(Bits);
    if (steps_at_once(16))
        launch.template operator()<widest>();
    else if (steps_at_once(8))
        launch.template operator()<widest / 2>();
    else
        launch.template operator()<1>();
    KBENCH_CUDA_LAUNCHED("to_sequence_kernel");
}

/// A thread has N neighbouring elements at each of `at_once` places. dx may be y or dy, so nothing is __restrict__.
template <typename T, int N>
__global__ void __launch_bounds__(threads_per_block)
    hardtanh_backward_kernel(Clip<T> range, const T* y, const T* dy, T* dx, std::int64_t vectors) {
    constexpr int at_once = 2;
    const std::int64_t first = std::int64_t{blockIdx.x} * at_once * blockDim.x + threadIdx.x;
    Vector<T, N> clipped[at_once], gradient[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
        const std::int64_t index = first + i * blockDim.x;
        if (index >= vectors) continue;
        clipped[i] = Vector<T, N>::load_once(y + index * N);
        gradient[i] = Vector<T, N>::load_once(dy + index * N);
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
        const std::int64_t index = first + i * blockDim.x;
        if (index >= vectors) continue;
        Arithmetic<T> values[N];
        widen(clipped[i], values);
#pragma unroll
        for (int j = 0; j < N; ++j)
            if (!(values[j] > range.low && values[j] < range.high)) gradient[i].elements[j] = T(0);
        gradient[i].store_whole(dx + index * N);
    }
}

/// A square of 32 words of V elements each way goes through shared memory: a warp reads one step's features and writes
/// one feature's steps. A padding word per row keeps a column of words out of one bank; with two elements per word, two
/// lanes share a bank.
template <typename Bits, int V>
__global__ void __launch_bounds__(threads_per_block)
    from_sequence_kernel(const Bits* __restrict__ dy, Bits* __restrict__ dx, std::int64_t batch, std::int64_t features,
                         std::int64_t steps, unsigned tiles_across, unsigned tiles_down) {
    constexpr int side = 32 * V, warps = threads_per_block / 32, turns = side / warps;
    __shared__ __align__(16) Bits tile[side][side + V];
    const std::int64_t n = blockIdx.x / tiles_across / tiles_down;
    const std::int64_t first_feature = std::int64_t{blockIdx.x % tiles_across} * side;
    const std::int64_t first_step = std::int64_t{blockIdx.x / tiles_across % tiles_down} * side;
    const int lane = static_cast<int>(threadIdx.x) % 32 * V, own = static_cast<int>(threadIdx.x) / 32;

    Vector<Bits, V> read[turns] = {};
#pragma unroll
    for (int i = 0; i < turns; ++i) {  // V divides features and steps: a whole word or nothing
        const std::int64_t step = first_step + own + i * warps, feature = first_feature + lane;
        if (step < steps && feature < features)
            read[i] = Vector<Bits, V>::load_once(dy + (step * batch + n) * features + feature);
    }
#pragma unroll
    for (int i = 0; i < turns; ++i) read[i].store(&tile[own + i * warps][lane]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < turns; ++i) {
        const int of = own + i * warps;
        const std::int64_t step = first_step + lane, feature = first_feature + of;
        if (step >= steps || feature >= features) continue;
        Vector<Bits, V> made;
#pragma unroll
        for (int j = 0; j < V; ++j) made.elements[j] = tile[lane + j][of];
        made.store(dx + (n * features + feature) * steps + step);
    }
}

template <typename Bits>
void launch_from_sequence(const ToSequence& op, const void* dy, void* dx, cudaStream_t stream) {
    const auto launch = [&]<int V>() {
        constexpr int side = 32 * V;
        const std::int64_t across = divide_up(op.features, side), down = divide_up(op.steps, side);
        from_sequence_kernel<Bits, V>
            <<<static_cast<unsigned>(across * down * op.batch), threads_per_block, 0, stream>>>(
                static_cast<const Bits*>(dy), static_cast<Bits*>(dx), op.batch, op.features, op.steps,
                static_cast<unsigned>(across), static_cast<unsigned>(down));
    };
    constexpr int pair = features_a_word<Bits>;
    const auto whole = [](const void* pointer) {
        return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Word<Bits>) == 0;
    };
    if (op.features % pair == 0 && op.steps % pair == 0 && whole(dy) && whole(dx))
        launch.template operator()<pair>();
    else
        launch.template operator()<1>();
    KBENCH_CUDA_LAUNCHED("from_sequence_kernel");
}

}  // namespace

void hardtanh_forward(DataType type, const Hardtanh& op, In<"x"> x, Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        launch_segments<T>(Clip<T>{static_cast<A>(op.low), static_cast<A>(op.high)}, x, out, 1, op.rows * op.width,
                           stream);
    });
}

void time_mask_forward(DataType type, const TimeMask& op, In<"x"> x, In<"lengths", std::int32_t> lengths,
                       Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        launch_segments<T>(MaskSegments<T>{lengths, op.rows_each, op.frames_per_step, op.steps}, x, out,
                           op.batch * op.rows_each, op.steps, stream);
    });
}

void to_sequence_forward(DataType type, const ToSequence& op, In<"x"> x, Out<"out"> out, cudaStream_t stream) {
    switch (size_of(type)) {
        case 2: return launch_to_sequence<std::uint16_t>(op, x, out, stream);
        case 4: return launch_to_sequence<std::uint32_t>(op, x, out, stream);
        default: return launch_to_sequence<std::uint64_t>(op, x, out, stream);
    }
}

void hardtanh_backward(DataType type, const Hardtanh& op, In<"y"> y, In<"dy"> dy, Out<"dx"> dx, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        const std::int64_t count = op.rows * op.width;
        dispatch_vector<vector_width<T>>(count, {y, dy, dx}, [&]<int N>() {
            const std::int64_t vectors = count / N;
            hardtanh_backward_kernel<T, N>
                <<<static_cast<unsigned>(divide_up(vectors, 2 * threads_per_block)), threads_per_block, 0, stream>>>(
                    Clip<T>{static_cast<A>(op.low), static_cast<A>(op.high)}, static_cast<const T*>(y),
                    static_cast<const T*>(dy), static_cast<T*>(dx), vectors);
        });
        KBENCH_CUDA_LAUNCHED("hardtanh_backward_kernel");
    });
}

void to_sequence_backward(DataType type, const ToSequence& op, In<"dy"> dy, Out<"dx"> dx, cudaStream_t stream) {
    switch (size_of(type)) {
        case 2: return launch_from_sequence<std::uint16_t>(op, dy, dx, stream);
        case 4: return launch_from_sequence<std::uint32_t>(op, dy, dx, stream);
        default: return launch_from_sequence<std::uint64_t>(op, dy, dx, stream);
    }
}

}  // namespace kbench::cuda
