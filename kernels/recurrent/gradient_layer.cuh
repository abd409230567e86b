// The backward of a recurrent layer as its kernels see it, and the backward of its cells.
#pragma once

#include "kernels/recurrent/cell.cuh"
#include "kernels/recurrent/cells.cuh"
#include "kernels/recurrent/layer.cuh"

namespace kbench::cuda::recurrent_layer {

/// The signature of recurrent_gradient.
using LaunchGradient = void(const RecurrentProblem&, const RecurrentGradientDirection& forward,
                            const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                            cudaStream_t);
LaunchGradient gradient_fp16, gradient_bf16, gradient_tf32, gradient_fp32, gradient_fp64;

/// Chunks of a warp whose weights fit into a resident block: as many bytes as in a forward of four gates.
inline constexpr int gradient_resident_chunks = 4 * resident_chunks;

template <class T>
struct GradientDirectionOf {
    const T *dout, *weight_hh, *gates, *cells, *out;
    T* dgates_x;
    T* weight;             ///< weight_hh transposed: [hidden, db_stride], 0 after its gates * hidden columns
    T* db[2];              ///< [batch, db_stride]; step s reads db[s % 2]
    Arithmetic<T>* carry;  ///< [batch, hidden]: what the cell passes to the earlier step: dc (lstm), z dh (gru)
};

template <class T>
struct GradientLayer {
    GradientDirectionOf<T> directions[2];
    const std::int32_t* lengths;
    std::int64_t frames_per_step;
    int steps, batch, hidden;
    int db_stride;  ///< gates * hidden, rounded up to 16 bytes
};

inline std::int64_t db_stride_of(const RecurrentProblem& problem) {
    return h_stride_of(storage_type(problem.precision), gates_of(problem.cell) * problem.shape.hidden);
}

/// Bytes of weights, db and carry in the workspace.
inline std::size_t gradient_state_bytes(const RecurrentProblem& problem) {
    const DataType type = storage_type(problem.precision);
    const RecurrentShape& shape = problem.shape;
    const auto rows = static_cast<std::size_t>((2 * shape.hidden + 4 * shape.batch) * db_stride_of(problem));
    const auto carry = static_cast<std::size_t>(2 * shape.batch * shape.hidden);
    return rows * size_of(type) + carry * std::max(size_of(type), sizeof(float));
}

template <class T>
GradientLayer<T> gradient_layer_of(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                                   const RecurrentGradientDirection& reverse, const std::int32_t* lengths,
                                   void* workspace) {
    const RecurrentShape& shape = problem.shape;
    const std::int64_t stride = db_stride_of(problem), hidden = shape.hidden, batch = shape.batch;
    GradientLayer<T> layer{{},
                           lengths,
                           shape.frames_per_step,
                           static_cast<int>(shape.steps),
                           static_cast<int>(batch),
                           static_cast<int>(hidden),
                           static_cast<int>(stride)};
    T* const weights = static_cast<T*>(workspace);
    T* const db = weights + 2 * hidden * stride;
    auto* const carry = reinterpret_cast<Arithmetic<T>*>(db + 4 * batch * stride);
    for (int i = 0; i < 2; ++i) {
        const RecurrentGradientDirection& from = i == 0 ? forward : reverse;
        T* const own_db = db + 2 * i * batch * stride;
        layer.directions[i] = {
            static_cast<const T*>(from.dout),  static_cast<const T*>(from.weight_hh), static_cast<const T*>(from.gates),
            static_cast<const T*>(from.cells), static_cast<const T*>(from.out),       static_cast<T*>(from.dgates_x),
            weights + i * hidden * stride,     {own_db, own_db + batch * stride},     carry + i * batch * hidden};
    }
    return layer;
}

/// tanh(x) and 1 - tanh(x)^2, without cancellation where tanh is close to 1.
template <class S>
struct TanhAndSlope {
    S value, slope;
};
__device__ inline TanhAndSlope<float> tanh_and_slope(float x) {
    const float e = __expf(-2.0f * fabsf(x)), q = __fdividef(1.0f, 1.0f + e);
    return {copysignf((1.0f - e) * q, x), 4.0f * e * q * q};
}
__device__ inline TanhAndSlope<double> tanh_and_slope(double x) {
    const double e = exp(-2.0 * fabs(x)), q = 1.0 / (1.0 + e);
    return {tanh(x), 4.0 * e * q * q};
}

/// A thread's cells in the backward, one per pass: one unit of several sequences. The forward direction goes from the
/// layer's last step to the first, the reverse one from the first to the last; sequences that have ended have gradients
/// of 0. So a step is the same row of all sequences.
template <class T, Cell cell, int tiles>
struct GradientCells {
    using S = Arithmetic<T>;
    static constexpr int gates = gates_of(cell), saved = saved_gates_of(cell);
    using Meeting = Exchange<S, 1, tiles>;
    static constexpr int passes = Meeting::passes;

    int unit, sequence[passes];
    int steps[passes];  ///< the sequence's steps; -1 where the thread has no cell
    S carry[passes] = {};
    // The rest belongs to the step that `read` was called for.
    bool runs[passes];
    int row[passes] = {};
    T dout[passes], gate[passes][saved > 0 ? saved : 1], own[passes], before[passes];  ///< c (lstm), h (gru and rnn)

    __device__ GradientCells(const GradientLayer<T>& layer, int first_unit, int first_sequence) {
        unit = first_unit + threadIdx.x % block_units;
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            sequence[pass] =
                first_sequence + pass * Meeting::tiles_at_once * tile_sequences + threadIdx.x / block_units;
            steps[pass] = -1;
            if (threadIdx.x < Meeting::cells && unit < layer.hidden && sequence[pass] < layer.batch)
                steps[pass] =
                    static_cast<int>(steps_of(layer.lengths[sequence[pass]], layer.frames_per_step, layer.steps));
        }
    }

    __device__ bool has_cell(int pass) const { return steps[pass] >= 0; }

    /// Starts to read what the forward saved.
    __device__ void read(const GradientLayer<T>& layer, const GradientDirectionOf<T>& from, bool reverse, int step) {
        const int t = reverse ? step : layer.steps - 1 - step, t_before = reverse ? t + 1 : t - 1;
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            runs[pass] = t < steps[pass];
            row[pass] = t * layer.batch + sequence[pass];
            if (!runs[pass]) continue;
            const std::int64_t at = std::int64_t{row[pass]} * layer.hidden + unit;
            dout[pass] = from.dout[at];
            const T* const of_gates =
                saved > 0 ? from.gates + std::int64_t{row[pass]} * saved * layer.hidden + unit : nullptr;
#pragma unroll
            for (int i = 0; i < saved; ++i) gate[pass][i] = of_gates[std::int64_t{i} * layer.hidden];
            const T* const state = cell == Cell::lstm ? from.cells : from.out;
            if constexpr (cell != Cell::gru) own[pass] = state[at];
            if constexpr (cell != Cell::rnn) {
                const bool is_first = t_before < 0 || t_before >= steps[pass];
                const std::int64_t distance = std::int64_t{layer.batch} * layer.hidden;
                before[pass] = is_first ? static_cast<T>(0.0f) : state[reverse ? at + distance : at - distance];
            }
        }
    }

    /// Turns `product`, the gradient that h[t] gets from the later step, into da and db as they are stored, and carry
    /// into what the earlier step needs. After the end of a sequence all are 0, whatever `product` is.
    __device__ void advance(int pass, S product, T (&da)[gates], T (&db)[gates]) {
        if (!runs[pass]) {
            carry[pass] = S(0);
#pragma unroll
            for (int i = 0; i < gates; ++i) da[i] = db[i] = static_cast<T>(0.0f);
            return;
        }
        const S one(1), dh_out = static_cast<S>(dout[pass]) + product;
        const auto value = [&](int i) { return static_cast<S>(gate[pass][i]); };
        if constexpr (cell == Cell::lstm) {
            const S i = value(0), f = value(1), g = value(2), o = value(3);
            const auto squashed = tanh_and_slope(static_cast<S>(own[pass]));
            const S dc = carry[pass] + dh_out * o * squashed.slope;
            da[0] = static_cast<T>(dc * g * i * (one - i));
            da[1] = static_cast<T>(dc * static_cast<S>(before[pass]) * f * (one - f));
            da[2] = static_cast<T>(dc * i * (one - g * g));
            da[3] = static_cast<T>(dh_out * squashed.value * o * (one - o));
            carry[pass] = dc * f;
        } else if constexpr (cell == Cell::gru) {
            const S r = value(0), z = value(1), n = value(2), b = value(3), dh = dh_out + carry[pass];
            const S dn = dh * (one - z) * (one - n * n);
            da[0] = static_cast<T>(dn * b * r * (one - r));
            da[1] = static_cast<T>(dh * (static_cast<S>(before[pass]) - n) * z * (one - z));
            da[2] = static_cast<T>(dn);
            carry[pass] = dh * z;
            db[2] = static_cast<T>(dn * r);
        } else {
            const S h = static_cast<S>(own[pass]);
            da[0] = static_cast<T>(dh_out * (one - h * h));
        }
#pragma unroll
        for (int i = 0; i < gates; ++i)
            if (cell != Cell::gru || i != 2) db[i] = da[i];
    }

    __device__ void store(const GradientLayer<T>& layer, const GradientDirectionOf<T>& to, int pass,
                          const T (&da)[gates]) const {
        T* const first = to.dgates_x + std::int64_t{row[pass]} * gates * layer.hidden + unit;
#pragma unroll
        for (int i = 0; i < gates; ++i) first[std::int64_t{i} * layer.hidden] = da[i];
    }
};

}  // namespace kbench::cuda::recurrent_layer
