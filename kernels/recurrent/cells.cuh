// What the threads of a block do between two products with h: add up the sums of its warps, and advance the cells of
// the block's units and sequences.
#pragma once

#include "kernels/recurrent/cell.cuh"
#include "kernels/recurrent/layer.cuh"

namespace kbench::cuda::recurrent_layer {

/// Adds up the sums of all warps, for up to two tiles of sequences at a time: a cell per thread, or per second thread.
template <class S, int gates, int tiles>
struct Exchange {
    static constexpr int tiles_at_once = tiles < 2 ? tiles : 2;
    static constexpr int passes = tiles / tiles_at_once, cells = tiles_at_once * tile_sequences * block_units;
    /// A pitch of 33 avoids bank conflicts: a warp reads 8 lanes of 4 sums at a time.
    static constexpr int lanes = 33, of_warp = tiles_at_once * gates * 4 * lanes;
    static constexpr int bytes = block_warps * of_warp * static_cast<int>(sizeof(S));
    static_assert(cells <= block_threads);

    /// Products of the thread's cell in the pass, by gate. All threads call it after a barrier that frees `sums`.
    template <class Products>
    static __device__ void add_up(const Products& products, int pass, S* sums, S (&of_gates)[gates]) {
        const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
#pragma unroll
        for (int tile = 0; tile < tiles_at_once; ++tile)
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[warp * of_warp + ((tile * gates + gate) * 4 + e) * lanes + lane] =
                        products.sums[gate][pass * tiles_at_once + tile][e];
        __syncthreads();
        if (thread >= cells) return;
        // The lane and place that hold row u and column n of a 16 x 8 product.
        const int u = thread % block_units, n = thread / block_units % tile_sequences;
        const int tile = thread / block_units / tile_sequences;
        const int from_lane = u % 8 * 4 + n / 2, e = u / 8 * 2 + n % 2;
#pragma unroll
        for (int gate = 0; gate < gates; ++gate)
#pragma unroll
            for (int w = 0; w < block_warps; ++w)
                of_gates[gate] += sums[w * of_warp + ((tile * gates + gate) * 4 + e) * lanes + from_lane];
    }
};

/// A thread's cells, one per pass: one unit of several sequences.
template <class Core, Cell cell, int tiles>
struct Cells {
    using T = typename Core::T;
    using S = typename Core::S;
    static constexpr int gates = gates_of(cell), saved = saved_gates_of(cell);
    using Meeting = Exchange<S, gates, tiles>;
    static constexpr int passes = Meeting::passes;

    int unit, sequence[passes];
    int steps[passes];  ///< the sequence's steps; -1 where the thread has no cell
    S bias[gates], bias_n = S(0);
    S h[passes] = {}, c[passes] = {};
    S left[passes][saved > 0 ? saved : 1];  ///< the gates, for the backward
    // The rest belongs to the step that `read` was called for.
    bool runs[passes];
    int row[passes] = {};  ///< row of gates_x and out
    T x[passes][gates];

    __device__ Cells(const Layer<T>& layer, const DirectionOf<T>& own, int first_unit, int first_sequence) {
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
        if (unit >= layer.hidden) return;
#pragma unroll
        for (int gate = 0; gate < gates; ++gate) {
            const std::int64_t at = std::int64_t{gate} * layer.hidden + unit;
            const S bias_hh = static_cast<S>(own.bias_hh[at]);
            bias[gate] = static_cast<S>(own.bias_ih[at]);
            if (cell == Cell::gru && gate == 2)
                bias_n = bias_hh;
            else
                bias[gate] += bias_hh;
        }
    }

    __device__ bool has_cell(int pass) const { return steps[pass] >= 0; }

    /// Starts to read the input's contribution to the gates.
    __device__ void read(const Layer<T>& layer, const DirectionOf<T>& own, bool reverse, int step) {
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            runs[pass] = step < steps[pass];
            row[pass] = (reverse && runs[pass] ? steps[pass] - 1 - step : step) * layer.batch + sequence[pass];
            if (!runs[pass]) continue;
            const T* const from = own.gates_x + std::int64_t{row[pass]} * gates * layer.hidden + unit;
#pragma unroll
            for (int gate = 0; gate < gates; ++gate) x[pass][gate] = from[std::int64_t{gate} * layer.hidden];
        }
    }

    /// Returns the cell's next h as it is stored, and keeps it. After the end of a sequence it returns 0 and drops the
    /// products.
    __device__ T advance(int pass, const S (&products)[gates]) {
        if (!runs[pass]) return static_cast<T>(0.0f);
        S a[gates];
#pragma unroll
        for (int gate = 0; gate < gates; ++gate) a[gate] = static_cast<S>(x[pass][gate]) + bias[gate];
        const T next = static_cast<T>(next_h<cell>(a, bias_n, products, h[pass], c[pass], left[pass]));
        h[pass] = static_cast<S>(next);
        return next;
    }

    /// Stores what `advance` found for the backward, if there is one. After the end of a sequence it stores 0, so that
    /// every element is written.
    __device__ void save(const Layer<T>& layer, const DirectionOf<T>& own, int pass) const {
        if (saved == 0 || own.gates == nullptr) return;
        T* const to = own.gates + std::int64_t{row[pass]} * saved * layer.hidden + unit;
#pragma unroll
        for (int gate = 0; gate < saved; ++gate)
            to[std::int64_t{gate} * layer.hidden] = static_cast<T>(runs[pass] ? left[pass][gate] : S(0));
        if (cell == Cell::lstm)
            own.cells[std::int64_t{row[pass]} * layer.hidden + unit] = static_cast<T>(runs[pass] ? c[pass] : S(0));
    }
};

}  // namespace kbench::cuda::recurrent_layer
