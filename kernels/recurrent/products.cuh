// How a warp multiplies weights with h: one `Core` per precision.
//
// All use the same pieces. In a chunk of 64 bytes along k, lane 4 g + t holds the 16 bytes at 16 t of rows g and g + 8
// of a gate's weights, and of h of sequence g. Tensor cores accept k in any order that weights and h share: each lane's
// 16 bytes become its elements of two products (one in fp64). So no lane needs what another one loads.
//
// A Core is its stored type T and sum S, `most_tiles` (the tiles of sequences whose sums fit into registers) and
// Products<gates, tiles>. Its `add` takes chunks, with weights and h where h(tile, lane) says. At the end `sums`
// are those of a 16 x 8 product in the layout of mma.cuh.
#pragma once

#include "kernels/attention/operand.cuh"
#include "kernels/mma.cuh"
#include "kernels/recurrent/layer.cuh"

namespace kbench::cuda::recurrent_layer {

/// Products on tensor cores. `Unit` has T, S, most_tiles, `prepare` of 16 bytes and `multiply`.
template <class Unit>
struct TensorCore {
    using T = typename Unit::T;
    using S = typename Unit::S;
    static constexpr int most_tiles = Unit::most_tiles;
    static __device__ uint4 prepare(const uint4& stored) { return Unit::prepare(stored); }

    template <int gates, int tiles>
    struct Products {
        S sums[gates][tiles][4] = {};

        template <class H>
        __device__ void add(const uint4 (&weights)[gates][2], const H& h, int lane) {
            uint4 own[tiles];
#pragma unroll
            for (int tile = 0; tile < tiles; ++tile) own[tile] = Unit::prepare(h(tile, lane));
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                for (int tile = 0; tile < tiles; ++tile)
                    Unit::multiply(sums[gate][tile], weights[gate][0], weights[gate][1], own[tile]);
        }
        __device__ void finish(int) {}
    };
};

template <class Element>
struct Unit16Bit {
    using T = Element;
    using S = float;
    static constexpr int most_tiles = 4;
    static __device__ uint4 prepare(const uint4& stored) { return stored; }
    static __device__ void multiply(float (&c)[4], const uint4& low, const uint4& high, const uint4& h) {
        const unsigned first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
        Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], first, h.x, h.y);
        Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], second, h.z, h.w);
    }
};

/// fp32 in memory, rounded to tf32 for the tensor cores.
struct UnitTf32 {
    using T = float;
    using S = float;
    static constexpr int most_tiles = 4;
    static __device__ unsigned rounded(unsigned bits) {
        return __float_as_uint(attention::operand(__uint_as_float(bits)));
    }
    static __device__ uint4 prepare(const uint4& stored) {
        return {rounded(stored.x), rounded(stored.y), rounded(stored.z), rounded(stored.w)};
    }
    static __device__ void multiply(float (&c)[4], const uint4& low, const uint4& high, const uint4& h) {
        const auto f = [](unsigned bits) { return __uint_as_float(bits); };
        const float first[4] = {f(low.x), f(high.x), f(low.y), f(high.y)};
        const float second[4] = {f(low.z), f(high.z), f(low.w), f(high.w)};
        mma_16x8x8(c[0], c[1], c[2], c[3], first, f(h.x), f(h.y));
        mma_16x8x8(c[0], c[1], c[2], c[3], second, f(h.z), f(h.w));
    }
};

struct UnitFp64 {
    using T = double;
    using S = double;
    static constexpr int most_tiles = 2;  // four would take 128 registers
    static __device__ uint4 prepare(const uint4& stored) { return stored; }
    static __device__ void multiply(double (&c)[4], const uint4& low, const uint4& high, const uint4& h) {
        const auto d = [](unsigned lower, unsigned upper) {
            return __hiloint2double(static_cast<int>(upper), static_cast<int>(lower));
        };
        const double a[4] = {d(low.x, low.y), d(high.x, high.y), d(low.z, low.w), d(high.z, high.w)};
        mma_16x8x8(c[0], c[1], c[2], c[3], a, d(h.x, h.y), d(h.z, h.w));
    }
};

/// fp32 on the plain cores: a lane multiplies its rows with h of all 8 sequences, at its own four k.
struct PlainFp32 {
    using T = float;
    using S = float;
    static constexpr int most_tiles = 1;  // 64 sums per lane in an LSTM
    static __device__ uint4 prepare(const uint4& stored) { return stored; }

    template <int gates, int tiles>
    struct Products {
        static_assert(tiles == 1);
        S sums[gates][1][4];
        S parts[gates][2][tile_sequences] = {};

        template <class H>
        __device__ void add(const uint4 (&weights)[gates][2], const H& h, int lane) {
#pragma unroll
            for (int n = 0; n < tile_sequences; ++n) {
                const uint4 x = h(0, 4 * n + lane % 4);
#pragma unroll
                for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const uint4& w = weights[gate][half];
                        S& sum = parts[gate][half][n];
                        sum = fmaf(__uint_as_float(w.x), __uint_as_float(x.x), sum);
                        sum = fmaf(__uint_as_float(w.y), __uint_as_float(x.y), sum);
                        sum = fmaf(__uint_as_float(w.z), __uint_as_float(x.z), sum);
                        sum = fmaf(__uint_as_float(w.w), __uint_as_float(x.w), sum);
                    }
            }
        }
        /// Adds up the four lanes of a row; lane t keeps sequences 2 t and 2 t + 1.
        __device__ void finish(int lane) {
            const bool upper = lane & 2, odd = lane & 1;
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    S(&part)[tile_sequences] = parts[gate][half];
                    S four[4];
#pragma unroll
                    for (int n = 0; n < 4; ++n)
                        four[n] = (upper ? part[n + 4] : part[n]) +
                                  __shfl_xor_sync(0xffffffffu, upper ? part[n] : part[n + 4], 2);
#pragma unroll
                    for (int n = 0; n < 2; ++n)
                        sums[gate][0][2 * half + n] = (odd ? four[n + 2] : four[n]) +
                                                      __shfl_xor_sync(0xffffffffu, odd ? four[n] : four[n + 2], 1);
                }
        }
    };
};

}  // namespace kbench::cuda::recurrent_layer
