// Backward of fused causal attention in fp16 and bf16 on tensor cores: mma.sync.m16n8k16 with fp32 accumulators,
// operands through ldmatrix. In both kernels a warp owns 16 or 32 rows of the score matrix (queries in one, keys in
// the other), so that scores and dP come out of one product in the registers that the next product reads.
//
// An ldmatrix of 512 bytes takes four cycles of the SM's shared memory and feeds two 16 x 8 x 16 products per tile of
// 16 rows. With one such tile per warp shared memory would take longer than the tensor cores, hence two wherever
// registers allow it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/attention/gradient_problem.cuh"
#include "kernels/attention/softmax.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::attention {
namespace {

constexpr int warps = 4;

constexpr GradientTile tiles[] = {
    {.head_size = 32, .rows = 128, .others = 64, .chunk = 16, .blocks_per_sm = 2},
    // With few rows, smaller tiles: twice as many blocks.
    {.head_size = 64, .rows = 64, .others = 64, .chunk = 32, .blocks_per_sm = 2, .most_rows = few_rows},
    {.head_size = 64, .rows = 128, .others = 64, .chunk = 16, .blocks_per_sm = 2},
    // The sums of dk and dv and the fragments of k and v take 144 and 192 registers.
    {.head_size = 96, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
    {.head_size = 128, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
};

/// Sizes that follow from a tile. A pitch of an odd number of 16-byte vectors puts the 8 rows that one ldmatrix reads
/// together into different banks.
template <int index>
struct Layout {
    static constexpr GradientTile tile = tiles[index];
    static constexpr int pitch = tile.head_size + 8;
    static constexpr int threads = warps * warp_size;
    static constexpr int warp_rows = tile.rows / warps;
    static constexpr int row_tiles = warp_rows / 16;  ///< row tiles per warp
    static constexpr int own_elements = tile.rows * pitch;
    static constexpr int other_elements = tile.others * pitch;
    static constexpr int stage_elements = 2 * other_elements;  ///< two stages of k and v, or of q and dout
    static constexpr int stats_bytes = 2 * tile.others * static_cast<int>(sizeof(Stats<__half>));
    static constexpr int query_smem_bytes = 2 * (3 * own_elements + 2 * stage_elements);  ///< own: q, dout, out
    static constexpr int key_smem_bytes = 2 * (2 * own_elements + 2 * stage_elements) + stats_bytes;  ///< own: k, v
    static_assert(tile.rows % (16 * warps) == 0 && tile.others % tile.chunk == 0 && tile.chunk % 16 == 0);
    static_assert(stats_rows % tile.rows == 0 && tile.rows % tile.others == 0);
};

__device__ inline float2 unpack(const __half*, unsigned pair) {
    return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
__device__ inline float2 unpack(const __nv_bfloat16*, unsigned pair) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

/// A lane's part of sums over 16 rows and `eights` times 8 columns: [n][0] and [n][1] lie in row g, [n][2] and [n][3]
/// in row g + 8, at columns 8 n + 2 t and 8 n + 2 t + 1.
template <int eights>
using Sums = float[eights][4];

/// Fragments of `row_tiles` times 16 rows as the left factor.
template <int row_tiles, int depth_steps>
using Fragments = unsigned[row_tiles][depth_steps][4];

template <int pitch, int row_tiles, int depth_steps, class T>
__device__ void load_fragments(Fragments<row_tiles, depth_steps>& fragments, const T* rows, int lane) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m)
#pragma unroll
        for (int d = 0; d < depth_steps; ++d)
            ldmatrix_x4(fragments[m][d], rows + (m * 16 + lane % 16) * pitch + d * 16 + lane / 16 * 8);
}

/// sums += own others^T, over all columns of both.
template <int pitch, int row_tiles, int depth_steps, int eights, class T>
__device__ void multiply_rows(Sums<eights> (&sums)[row_tiles], const Fragments<row_tiles, depth_steps>& own,
                              const T* rows, int lane) {
    const T* const from = rows + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8;
#pragma unroll
    for (int d = 0; d < depth_steps; ++d)
#pragma unroll
        for (int n = 0; n < eights / 2; ++n) {
            unsigned b[4];
            ldmatrix_x4(b, from + n * 16 * pitch + d * 16);
#pragma unroll
            for (int m = 0; m < row_tiles; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float(&c)[4] = sums[m][2 * n + half];
                    Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], own[m][d], b[2 * half], b[2 * half + 1]);
                }
        }
}

/// sums += weights rows. `weights` are rounded to T first.
template <int pitch, int row_tiles, int column_eights, int eights, class T>
__device__ void add_weighted_rows(Sums<column_eights> (&sums)[row_tiles], const Sums<eights> (&weights)[row_tiles],
                                  const T* rows, int lane) {
    const T* const from = rows + lane % 16 * pitch + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < eights / 2; ++n) {
        unsigned a[row_tiles][4];
#pragma unroll
        for (int m = 0; m < row_tiles; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[m][i] =
                    Mma16Bit<T>::pack(weights[m][2 * n + i / 2][i % 2 * 2], weights[m][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int d = 0; d < column_eights / 2; ++d) {
            unsigned b[4];
            ldmatrix_x4_transposed(b, from + n * 16 * pitch + d * 16);
#pragma unroll
            for (int m = 0; m < row_tiles; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float(&c)[4] = sums[m][2 * d + half];
                    Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], a[m], b[2 * half], b[2 * half + 1]);
                }
        }
    }
}

/// Sets scores to -infinity, so that P is 0, where is_hidden(m, r, other) for row g + 8 r of row tile m.
template <int row_tiles, int eights, class IsHidden>
__device__ void hide(Sums<eights> (&scores)[row_tiles], const IsHidden& is_hidden, int t) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m)
#pragma unroll
        for (int n = 0; n < eights; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (is_hidden(m, i / 2, n * 8 + t * 2 + i % 2)) scores[m][n][i] = -infinity<float>;
}

/// Stores a warp's sums times `factor` to the rows from `first_row` on, as far as `to` has them.
template <class T, int row_tiles, int eights>
__device__ void store_sums(T* to, const Rows& rows, int first_row, const Sums<eights> (&sums)[row_tiles], float factor,
                           int lane) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = first_row + m * 16 + r * 8 + lane / 4;
            if (row >= rows.seq) return;
            T* const target = to + row * rows.row_stride;
#pragma unroll
            for (int n = 0; n < eights; ++n) {
                const unsigned pair = Mma16Bit<T>::pack(sums[m][n][2 * r] * factor, sums[m][n][2 * r + 1] * factor);
                store<2>(target, n * 8 + lane % 4 * 2, reinterpret_cast<const T*>(&pair), rows);
            }
        }
}

/// Computes dq for a block of queries, and the stats of every query.
template <class T, int index>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_dq_mma(GradientProblem<T> problem) {
    using L = Layout<index>;
    constexpr GradientTile tile = L::tile;
    constexpr int depth_steps = tile.head_size / 16;
    extern __shared__ __align__(16) unsigned char smem[];
    const int thread = threadIdx.x, warp = thread / warp_size, lane = thread % warp_size, t = lane % 4;
    T* const q = reinterpret_cast<T*>(smem);
    T* const dout = q + L::own_elements;
    T* const out = dout + L::own_elements;
    T* const stages = out + L::own_elements;

    const GradientWork<T> work = gradient_work_of_block<tile.rows, true>(problem);
    const int seq = problem.in_qkv.seq;
    const int key_tiles = (min(work.first_row + tile.rows, seq) + tile.others - 1) / tile.others;
    const auto load = [&](int key_tile, int stage) {
        load_k_and_v<L, tile.others>(stages + stage * L::stage_elements, work, key_tile * tile.others, problem, thread);
    };
    load_q_and_dout<L, tile.rows>(q, work, work.first_row, problem, thread);
    load_tile<tile.rows, tile.head_size, L::pitch, L::threads>(out, work.out, work.first_row, problem.in_out, thread);
    load(0, 0);
    cp_async_wait_all();
    __syncthreads();

    const int warp_row = warp * L::warp_rows, first_query = work.first_row + warp_row;
    Fragments<L::row_tiles, depth_steps> q_fragments, dout_fragments;
    load_fragments<L::pitch>(q_fragments, q + warp_row * L::pitch, lane);
    load_fragments<L::pitch>(dout_fragments, dout + warp_row * L::pitch, lane);
    Stats<T> stats[L::row_tiles][2];
#pragma unroll
    for (int m = 0; m < L::row_tiles; ++m) {
        float d[2] = {};
#pragma unroll
        for (int step = 0; step < depth_steps; ++step) {
            unsigned o[4];
            ldmatrix_x4(o, out + (warp_row + m * 16 + lane % 16) * L::pitch + step * 16 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < 4; ++i) {  // row g has the even fragments
                const float2 x = unpack(out, o[i]), y = unpack(out, dout_fragments[m][step][i]);
                d[i % 2] = fmaf(x.x, y.x, fmaf(x.y, y.y, d[i % 2]));
            }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int query = first_query + m * 16 + r * 8 + lane / 4;
            stats[m][r] = stats_of(problem, work, query, lanes_sum<4>(d[r]));
            if (t == 0) work.stats[query] = stats[m][r];
        }
    }

    Sums<tile.head_size / 8> dq[L::row_tiles] = {};
    for (int key_tile = 0; key_tile < key_tiles; ++key_tile) {
        if (key_tile > 0) {
            cp_async_wait_all();
            __syncthreads();  // this stage has arrived, and all warps are done with the other one
        }
        if (key_tile + 1 < key_tiles) load(key_tile + 1, (key_tile + 1) % 2);
        const T* const k_tile = stages + key_tile % 2 * L::stage_elements;
#pragma unroll 1
        for (int chunk = 0; chunk < tile.others; chunk += tile.chunk) {
            const int first_key = key_tile * tile.others + chunk;
            if (first_key >= first_query + L::warp_rows) break;
            const T* const k = k_tile + chunk * L::pitch;
            Sums<tile.chunk / 8> p[L::row_tiles] = {}, ds[L::row_tiles];
#pragma unroll
            for (int m = 0; m < L::row_tiles; ++m)
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) ds[m][n][i] = -stats[m][i / 2].d;
            multiply_rows<L::pitch>(p, q_fragments, k, lane);
            multiply_rows<L::pitch>(ds, dout_fragments, k + L::other_elements, lane);
            if (first_key + tile.chunk > first_query + 1)
                hide(
                    p,
                    [&](int m, int r, int other) {
                        return first_key + other > first_query + m * 16 + r * 8 + lane / 4;
                    },
                    t);
#pragma unroll
            for (int m = 0; m < L::row_tiles; ++m)
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        ds[m][n][i] *= power_of_two(fmaf(p[m][n][i], problem.scale_log2, -stats[m][i / 2].lse_log2));
            add_weighted_rows<L::pitch>(dq, ds, k, lane);
        }
    }
    store_sums(work.dq, problem.in_qkv, first_query, dq, problem.scale, lane);
}

/// Computes dk and dv for a block of keys. Runs after attention_dq_mma, whose stats it reads.
template <class T, int index>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_dkdv_mma(GradientProblem<T> problem) {
    using L = Layout<index>;
    constexpr GradientTile tile = L::tile;
    constexpr int depth_steps = tile.head_size / 16;
    extern __shared__ __align__(16) unsigned char smem[];
    const int thread = threadIdx.x, warp = thread / warp_size, lane = thread % warp_size, t = lane % 4;
    T* const k = reinterpret_cast<T*>(smem);
    T* const v = k + L::own_elements;
    T* const stages = v + L::own_elements;
    auto* const all_stats = reinterpret_cast<Stats<T>*>(stages + 2 * L::stage_elements);

    const GradientWork<T> work = gradient_work_of_block<tile.rows, false>(problem);
    const int seq = problem.in_qkv.seq;
    const int first_tile = work.first_row / tile.others, query_tiles = (seq + tile.others - 1) / tile.others;
    const auto load = [&](int query_tile, int stage) {
        load_q_and_dout<L, tile.others>(stages + stage * L::stage_elements, work, query_tile * tile.others, problem,
                                        thread);
        load_stats<tile.others, L::threads>(all_stats + stage * tile.others, work.stats + query_tile * tile.others,
                                            thread);
    };
    load_k_and_v<L, tile.rows>(k, work, work.first_row, problem, thread);
    load(first_tile, first_tile % 2);
    cp_async_wait_all();
    __syncthreads();

    const int warp_row = warp * L::warp_rows, first_key = work.first_row + warp_row;
    Fragments<L::row_tiles, depth_steps> k_fragments, v_fragments;
    load_fragments<L::pitch>(k_fragments, k + warp_row * L::pitch, lane);
    load_fragments<L::pitch>(v_fragments, v + warp_row * L::pitch, lane);

    Sums<tile.head_size / 8> dk[L::row_tiles] = {}, dv[L::row_tiles] = {};
    for (int query_tile = first_tile; query_tile < query_tiles; ++query_tile) {
        if (query_tile > first_tile) {
            cp_async_wait_all();
            __syncthreads();  // this stage has arrived, and all warps are done with the other one
        }
        if (query_tile + 1 < query_tiles) load(query_tile + 1, (query_tile + 1) % 2);
        const T* const q_tile = stages + query_tile % 2 * L::stage_elements;
        const Stats<T>* const tile_stats = all_stats + query_tile % 2 * tile.others;
#pragma unroll 1
        for (int chunk = 0; chunk < tile.others; chunk += tile.chunk) {
            const int first_query = query_tile * tile.others + chunk;
            if (first_query + tile.chunk <= first_key) continue;
            if (first_query >= seq) break;
            const T* const q = q_tile + chunk * L::pitch;
            const T* const dout = q + L::other_elements;
            Sums<tile.chunk / 8> p[L::row_tiles] = {}, ds[L::row_tiles];
            Stats<T> stats[tile.chunk / 8][2];
#pragma unroll
            for (int n = 0; n < tile.chunk / 8; ++n) {
                const float4 two = *reinterpret_cast<const float4*>(tile_stats + chunk + n * 8 + t * 2);
                stats[n][0] = {two.x, two.y};
                stats[n][1] = {two.z, two.w};
#pragma unroll
                for (int m = 0; m < L::row_tiles; ++m)
#pragma unroll
                    for (int i = 0; i < 4; ++i) ds[m][n][i] = -stats[n][i % 2].d;
            }
            multiply_rows<L::pitch>(p, k_fragments, q, lane);
            if (first_key + L::warp_rows > first_query + 1)
                hide(
                    p,
                    [&](int m, int r, int other) {
                        return first_key + m * 16 + r * 8 + lane / 4 > first_query + other;
                    },
                    t);
#pragma unroll
            for (int m = 0; m < L::row_tiles; ++m)
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        p[m][n][i] = power_of_two(fmaf(p[m][n][i], problem.scale_log2, -stats[n][i % 2].lse_log2));
            multiply_rows<L::pitch>(ds, v_fragments, dout, lane);
            add_weighted_rows<L::pitch>(dv, p, dout, lane);
#pragma unroll
            for (int m = 0; m < L::row_tiles; ++m)
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) ds[m][n][i] *= p[m][n][i];
            add_weighted_rows<L::pitch>(dk, ds, q, lane);
        }
    }
    store_sums(work.dk, problem.in_qkv, first_key, dk, problem.scale, lane);
    store_sums(work.dv, problem.in_qkv, first_key, dv, 1.0f, lane);
}

template <class T, std::size_t... i>
constexpr std::array<GradientKernel, sizeof...(i)> kernels(std::index_sequence<i...>) {
    return {GradientKernel{"attention_gradient_mma", tiles[i], gradient_smem_bytes<Layout<i>>,
                           launch_gradient<T, Layout<i>, attention_dq_mma<T, i>, attention_dkdv_mma<T, i>>}...};
}

}  // namespace

GradientKernels fp16_gradient_kernels() {
    static constexpr auto rows = kernels<__half>(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

GradientKernels bf16_gradient_kernels() {
    static constexpr auto rows = kernels<__nv_bfloat16>(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
