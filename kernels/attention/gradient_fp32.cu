// Backward of fused causal attention in fp32 on the FMA units. A warp owns 32 rows of the score matrix, queries in one
// kernel and keys in the other. Its lanes form 4 rows x 8 columns, and a lane computes 8 rows by others / 8 scores
// and by head_size / 8 sums, as in a register-tiled GEMM. P and dS go through shared memory that only their warp uses.
#include "kernels/attention/gradient_problem.cuh"
#include "kernels/attention/softmax.cuh"

namespace kbench::cuda::attention {
namespace {

constexpr GradientTile tiles[] = {
    {.head_size = 32, .rows = 128, .others = 32, .chunk = 32, .blocks_per_sm = 2},
    {.head_size = 64, .rows = 128, .others = 32, .chunk = 32, .blocks_per_sm = 2},
    // A kernel each for dk and dv, hence 8 products: the sums of both would take 192 or 256 registers.
    {.head_size = 96, .rows = 64, .others = 32, .chunk = 32, .blocks_per_sm = 2},
    {.head_size = 128, .rows = 64, .others = 32, .chunk = 32, .blocks_per_sm = 2},
};

/// The pitches avoid bank conflicts between rows that are accessed together: 8 rows of the others or 4 own rows in
/// 16-byte accesses, 4 rows of P in accesses of 8 neighbouring elements.
template <int index>
struct Layout {
    static constexpr GradientTile tile = tiles[index];
    static constexpr int pitch = tile.head_size + 4, p_pitch = tile.others + 8;
    static constexpr int threads = tile.rows;
    static constexpr int own_elements = tile.rows * pitch;
    static constexpr int other_elements = tile.others * pitch;
    static constexpr int p_elements = tile.rows * p_pitch;
    static constexpr int columns = tile.head_size / 8, others = tile.others / 8;  ///< per lane
    /// Rows of the others that a lane holds at a time: the sums leave about 32 registers for them.
    static constexpr int other_rows = tile.head_size <= 64 ? 4 : 2;
    static constexpr int smem_bytes(int stats) {
        return 4 * (2 * own_elements + 2 * other_elements + p_elements) +
               stats * static_cast<int>(sizeof(Stats<float>));
    }
    static constexpr int query_smem_bytes = smem_bytes(tile.rows), key_smem_bytes = smem_bytes(tile.others);
    static_assert(stats_rows % tile.rows == 0 && tile.rows % tile.others == 0);
};

/// A lane's position in the tile, and where its rows begin in shared memory.
template <class L>
struct Lane {
    int row, column;  ///< it has rows row + 4 r of the block, columns column + 8 c of the others
    float* p;

    __device__ explicit Lane(float* all_p)
        : row(threadIdx.x / warp_size * warp_size + threadIdx.x % warp_size / 8),
          column(threadIdx.x % 8),
          p(all_p + row * L::p_pitch) {}
};

/// products = own others^T.
template <class L>
__device__ void multiply_rows(float (&products)[8][L::others], const float* own, const float* others,
                              const Lane<L>& lane) {
    const float* const a = own + lane.row * L::pitch;
    const float* const b = others + lane.column * L::pitch;
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < L::others; ++c) products[r][c] = 0;
#pragma unroll 2
    for (int d = 0; d < L::tile.head_size; d += 4) {
        Vector<float, 4> other[L::others];
#pragma unroll
        for (int c = 0; c < L::others; ++c) other[c] = Vector<float, 4>::load(b + c * 8 * L::pitch + d);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const auto row = Vector<float, 4>::load(a + r * 4 * L::pitch + d);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int c = 0; c < L::others; ++c) products[r][c] = fmaf(row.at[i], other[c].at[i], products[r][c]);
        }
    }
}

/// sums += weights rows. Column 4 c + i of a lane's sums is column 32 c + 4 lane.column + i.
template <class L>
__device__ void add_weighted_rows(float (&sums)[8][L::columns], const float (&weights)[8][L::others],
                                  const float* others, const Lane<L>& lane) {
    __syncwarp();  // all lanes are done with the P before
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < L::others; ++c) lane.p[r * 4 * L::p_pitch + lane.column + 8 * c] = weights[r][c];
    __syncwarp();
    const float* const from = others + lane.column * 4;
#pragma unroll 1
    for (int other = 0; other < L::tile.others; other += L::other_rows) {
        Vector<float, 4> value[L::other_rows][L::columns / 4];
#pragma unroll
        for (int i = 0; i < L::other_rows; ++i)
#pragma unroll
            for (int c = 0; c < L::columns / 4; ++c)
                value[i][c] = Vector<float, 4>::load(from + (other + i) * L::pitch + c * 32);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const auto weight = Vector<float, L::other_rows>::load(lane.p + r * 4 * L::p_pitch + other);
#pragma unroll
            for (int i = 0; i < L::other_rows; ++i)
#pragma unroll
                for (int c = 0; c < L::columns; ++c)
                    sums[r][c] = fmaf(weight.at[i], value[i][c / 4].at[c % 4], sums[r][c]);
        }
    }
}

/// Stores a lane's sums times `factor` to the block's rows of `to`, as far as they exist.
template <class L>
__device__ void store_sums(float* to, const Rows& rows, int first_row, const float (&sums)[8][L::columns], float factor,
                           const Lane<L>& lane) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int row = first_row + lane.row + 4 * r;
        if (row >= rows.seq) return;
#pragma unroll
        for (int c = 0; c < L::columns / 4; ++c) {
            const float* const from = sums[r] + 4 * c;
            alignas(16)
                const float values[4] = {from[0] * factor, from[1] * factor, from[2] * factor, from[3] * factor};
            store<4>(to + row * rows.row_stride, c * 32 + lane.column * 4, values, rows);
        }
    }
}

/// Computes dq for a block of queries, and the stats of every query.
template <int index>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_dq_fma(GradientProblem<float> problem) {
    using L = Layout<index>;
    constexpr GradientTile tile = L::tile;
    extern __shared__ __align__(16) float smem[];
    float* const q = smem;
    float* const dout = q + L::own_elements;
    float* const k = dout + L::own_elements;
    float* const v = k + L::other_elements;
    const Lane<L> lane(v + L::other_elements);
    auto* const all_stats = reinterpret_cast<Stats<float>*>(v + L::other_elements + L::p_elements);

    const GradientWork<float> work = gradient_work_of_block<tile.rows, true>(problem);
    const int seq = problem.in_qkv.seq, thread = threadIdx.x;
    load_q_and_dout<L, tile.rows>(q, work, work.first_row, problem, thread);
    cp_async_wait_all();
    __syncthreads();
    const int query = work.first_row + thread;  // each thread computes D of one query
    float d = 0;
    if (query < seq)
        for (int c = 0; c < problem.in_out.head_size; ++c)
            d = fmaf(dout[thread * L::pitch + c], work.out[query * problem.in_out.row_stride + c], d);
    work.stats[query] = all_stats[thread] = stats_of(problem, work, query, d);

    float dq[8][L::columns] = {};
    const int first_query = work.first_row + lane.row, last_query = work.first_row + (thread | 31);  // the warp's last
    const int key_tiles = (min(work.first_row + tile.rows, seq) + tile.others - 1) / tile.others;
    for (int key_tile = 0; key_tile < key_tiles; ++key_tile) {
        const int first_key = key_tile * tile.others;
        __syncthreads();  // all warps are done with k and v, and the stats are written
        load_k_and_v<L, tile.others>(k, work, first_key, problem, thread);
        cp_async_wait_all();
        __syncthreads();
        if (first_key > last_query) continue;
        float p[8][L::others], ds[8][L::others];
        multiply_rows(p, q, k, lane);
        multiply_rows(ds, dout, v, lane);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const Stats<float> stats = all_stats[lane.row + 4 * r];
#pragma unroll
            for (int c = 0; c < L::others; ++c) {
                const bool hidden = first_key + lane.column + 8 * c > first_query + 4 * r;
                const float weight = power_of_two(fmaf(p[r][c], problem.scale_log2, -stats.lse_log2));
                ds[r][c] = hidden ? 0.0f : weight * (ds[r][c] - stats.d);
            }
        }
        add_weighted_rows(dq, ds, k, lane);
    }
    store_sums(work.dq, problem.in_qkv, work.first_row, dq, problem.scale, lane);
}

/// Computes dk, dv or both for a block of keys. Runs after attention_dq_fma, whose stats it reads.
template <int index, KeyParts parts>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_dkdv_fma(GradientProblem<float> problem) {
    using L = Layout<index>;
    constexpr GradientTile tile = L::tile;
    constexpr bool makes_dk = parts != KeyParts::dv, makes_dv = parts != KeyParts::dk;
    extern __shared__ __align__(16) float smem[];
    float* const k = smem;
    float* const v = k + L::own_elements;
    float* const q = v + L::own_elements;
    float* const dout = q + L::other_elements;
    const Lane<L> lane(dout + L::other_elements);
    auto* const tile_stats = reinterpret_cast<Stats<float>*>(dout + L::other_elements + L::p_elements);

    const GradientWork<float> work = gradient_work_of_block<tile.rows, false>(problem);
    const int seq = problem.in_qkv.seq, thread = threadIdx.x;
    load_k_and_v<L, tile.rows>(k, work, work.first_row, problem, thread);

    float dk[8][makes_dk ? L::columns : 1] = {}, dv[8][makes_dv ? L::columns : 1] = {};
    const int first_key = work.first_row + lane.row, warp_key = work.first_row + thread / warp_size * warp_size;
    const int query_tiles = (seq + tile.others - 1) / tile.others;
    for (int query_tile = work.first_row / tile.others; query_tile < query_tiles; ++query_tile) {
        const int first_query = query_tile * tile.others;
        __syncthreads();  // all warps are done with q and dout
        load_q_and_dout<L, tile.others>(q, work, first_query, problem, thread);
        load_stats<tile.others, L::threads>(tile_stats, work.stats + first_query, thread);
        cp_async_wait_all();
        __syncthreads();
        if (first_query + tile.others <= warp_key) continue;
        float p[8][L::others];
        multiply_rows(p, k, q, lane);
#pragma unroll
        for (int c = 0; c < L::others; ++c) {
            const float lse_log2 = tile_stats[lane.column + 8 * c].lse_log2;
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const bool hidden = first_key + 4 * r > first_query + lane.column + 8 * c;
                p[r][c] = hidden ? 0.0f : power_of_two(fmaf(p[r][c], problem.scale_log2, -lse_log2));
            }
        }
        if constexpr (makes_dv) add_weighted_rows(dv, p, dout, lane);
        if constexpr (makes_dk) {
            float ds[8][L::others];
            multiply_rows(ds, v, dout, lane);
#pragma unroll
            for (int c = 0; c < L::others; ++c) {
                const float d = tile_stats[lane.column + 8 * c].d;
#pragma unroll
                for (int r = 0; r < 8; ++r) ds[r][c] = p[r][c] * (ds[r][c] - d);
            }
            add_weighted_rows(dk, ds, q, lane);
        }
    }
    if constexpr (makes_dk) store_sums(work.dk, problem.in_qkv, work.first_row, dk, problem.scale, lane);
    if constexpr (makes_dv) store_sums(work.dv, problem.in_qkv, work.first_row, dv, 1.0f, lane);
}

template <int index>
constexpr GradientKernel gradient_kernel() {
    constexpr auto dq = attention_dq_fma<index>;
    if constexpr (tiles[index].head_size > 64)
        return {"attention_gradient_fma", tiles[index], gradient_smem_bytes<Layout<index>>,
                launch_gradient<float, Layout<index>, dq, attention_dkdv_fma<index, KeyParts::dk>,
                                attention_dkdv_fma<index, KeyParts::dv>>};
    else
        return {"attention_gradient_fma", tiles[index], gradient_smem_bytes<Layout<index>>,
                launch_gradient<float, Layout<index>, dq, attention_dkdv_fma<index, KeyParts::dk_and_dv>>};
}

template <std::size_t... i>
constexpr std::array<GradientKernel, sizeof...(i)> kernels(std::index_sequence<i...>) {
    return {gradient_kernel<i>()...};
}

}  // namespace

GradientKernels fp32_gradient_kernels() {
    static constexpr auto rows = kernels(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
