// Backward of fused causal attention on m16n8k8 tensor core products, which tf32 and fp64 share: the fragments are the
// same, with elements of 4 or 8 bytes. A warp owns 16 rows of the score matrix, queries in one kernel and keys in
// the other.
//
// As in the forward (mma_8deep.cuh), the order of terms in a product is free and chosen so that every access to shared
// memory is 16 bytes wide and P and dS never change lanes. Here each array is read in two ways: as a factor of scores,
// one row per g; as a factor of the sums, rows 2 t and 2 t + 1 of the product. Product row or column g therefore stands
// for row or vector spread(g) of the tile. With a pitch of an odd number of 16-byte vectors, the eight lanes that are
// served together then hit eight different banks either way.
#pragma once

#include "kernels/attention/gradient_problem.cuh"
#include "kernels/attention/operand.cuh"
#include "kernels/attention/softmax.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::attention {

__device__ inline int spread(int g) { return g / 2 + g % 2 * 4; }

template <class T, class Tiles, int index>
struct GradientLayout8Deep {
    static constexpr GradientTile tile = Tiles::tiles[index];
    static constexpr int pitch = tile.head_size + vector_size<T>;
    static constexpr int threads = tile.rows / 16 * warp_size;
    static constexpr int own_elements = tile.rows * pitch;
    static constexpr int other_elements = tile.others * pitch;
    static constexpr int stage_elements = 2 * other_elements;  ///< two stages of k and v, or of q and dout
    static constexpr int query_smem_bytes = static_cast<int>(sizeof(T)) * 2 * (own_elements + stage_elements);
    static constexpr int stats_bytes = 2 * tile.others * static_cast<int>(sizeof(Stats<T>));
    static constexpr int key_smem_bytes = query_smem_bytes + stats_bytes;
    static constexpr bool own_in_registers = sizeof(T) == 4 && tile.head_size <= 64;
    static constexpr int depth_steps = tile.head_size / (4 * vector_size<T>);
    static_assert(tile.rows % 16 == 0 && tile.others % tile.chunk == 0 && tile.chunk % 8 == 0);
    static_assert(stats_rows % tile.rows == 0 && tile.rows % tile.others == 0);
    static_assert(own_elements <= 2 * stage_elements, "out has the stages' memory until D is known");
};

/// 16 rows of a tile as the left factor of scores; a lane holds vectors of rows spread(g) and spread(g) + 8.
template <class T, class L>
class OwnRows {
  public:
    __device__ OwnRows(const T* tile, int warp, int lane)
        : from_(tile + (warp * 16 + spread(lane / 4)) * L::pitch + lane % 4 * vector_size<T>) {
        if constexpr (L::own_in_registers) {
#pragma unroll
            for (int d = 0; d < L::depth_steps; ++d) read(d, vectors_[d]);
        }
    }
    __device__ void load(int d, Vector<T, vector_size<T>> (&rows)[2]) const {
        if constexpr (L::own_in_registers) {
            rows[0] = vectors_[d][0];
            rows[1] = vectors_[d][1];
        } else {
            read(d, rows);
        }
    }

  private:
    __device__ void read(int d, Vector<T, vector_size<T>> (&rows)[2]) const {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            rows[r] = Vector<T, vector_size<T>>::load(from_ + r * 8 * L::pitch + d * 4 * vector_size<T>);
#pragma unroll
            for (T& value : rows[r].at) value = operand(value);
        }
    }

    const T* from_;
    Vector<T, vector_size<T>> vectors_[L::own_in_registers ? L::depth_steps : 1][2];
};

/// sums += own others^T. [n][0] and [n][1] belong to row spread(g), [n][2] and [n][3] to spread(g) + 8, with rows
/// 8 n + t and 8 n + t + 4 of the others.
template <class L, class T, int eights>
__device__ void multiply_rows(T (&sums)[eights][4], const OwnRows<T, L>& own, const T* rows, int lane) {
    constexpr int width = vector_size<T>;
    const T* const from = rows + spread(lane / 4) * L::pitch + lane % 4 * width;
#pragma unroll
    for (int d = 0; d < L::depth_steps; ++d) {
        Vector<T, width> a[2];
        own.load(d, a);
#pragma unroll
        for (int n = 0; n < eights; ++n) {
            const auto b = Vector<T, width>::load(from + n * 8 * L::pitch + d * 4 * width);
#pragma unroll
            for (int i = 0; i < width; i += 2) {
                const T pair[4] = {a[0].at[i], a[1].at[i], a[0].at[i + 1], a[1].at[i + 1]};
                mma_16x8x8(sums[n][0], sums[n][1], sums[n][2], sums[n][3], pair, operand(b.at[i]),
                           operand(b.at[i + 1]));
            }
        }
    }
}

/// sums += weights rows. sums[d * width + i] are columns (8 d + t) width + i and (8 d + t + 4) width + i.
template <class L, class T, int column_eights, int eights>
__device__ void add_weighted_rows(T (&sums)[column_eights][4], const T (&weights)[eights][4], const T* rows, int lane) {
    constexpr int width = vector_size<T>;
    const T* const from = rows + lane % 4 * L::pitch + spread(lane / 4) * width;
#pragma unroll
    for (int n = 0; n < eights; ++n) {
        const T a[4] = {operand(weights[n][0]), operand(weights[n][2]), operand(weights[n][1]), operand(weights[n][3])};
#pragma unroll
        for (int d = 0; d < column_eights / width; ++d) {
            const T* const source = from + n * 8 * L::pitch + d * 8 * width;
            const auto low = Vector<T, width>::load(source), high = Vector<T, width>::load(source + 4 * L::pitch);
#pragma unroll
            for (int i = 0; i < width; ++i) {
                T(&c)[4] = sums[d * width + i];
                mma_16x8x8(c[0], c[1], c[2], c[3], a, operand(low.at[i]), operand(high.at[i]));
            }
        }
    }
}

/// Stores a warp's sums times `factor` to 16 rows of `to`, as far as they exist.
template <class T, int column_eights>
__device__ void store_sums(T* to, const Rows& rows, int first_row, const T (&sums)[column_eights][4], T factor,
                           int lane) {
    constexpr int width = vector_size<T>;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = first_row + spread(lane / 4) + 8 * r;
        if (row >= rows.seq) continue;
        T* const target = to + row * rows.row_stride;
#pragma unroll
        for (int d = 0; d < column_eights / width; ++d)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                Vector<T, width> values;
#pragma unroll
                for (int i = 0; i < width; ++i) values.at[i] = sums[d * width + i][2 * r + e] * factor;
                store<width>(target, (d * 8 + lane % 4 + 4 * e) * width, values.at, rows);
            }
    }
}

/// dq of a block of queries, and every query's stats.
template <class T, class Tiles, int index>
__global__ __launch_bounds__(
    GradientLayout8Deep<T, Tiles, index>::threads,
    GradientLayout8Deep<T, Tiles, index>::tile.blocks_per_sm) void attention_dq_mma(GradientProblem<T> problem) {
    using L = GradientLayout8Deep<T, Tiles, index>;
    constexpr GradientTile tile = L::tile;
    constexpr int width = vector_size<T>;
    extern __shared__ __align__(16) unsigned char smem[];
    const int thread = threadIdx.x, warp = thread / warp_size, lane = thread % warp_size, t = lane % 4;
    T* const q = reinterpret_cast<T*>(smem);
    T* const dout = q + L::own_elements;
    T* const stages = dout + L::own_elements;

    const GradientWork<T> work = gradient_work_of_block<tile.rows, true>(problem);
    const int key_tiles = (min(work.first_row + tile.rows, problem.in_qkv.seq) + tile.others - 1) / tile.others;
    const auto load = [&](int key_tile, int stage) {
        load_k_and_v<L, tile.others>(stages + stage * L::stage_elements, work, key_tile * tile.others, problem, thread);
    };
    load_q_and_dout<L, tile.rows>(q, work, work.first_row, problem, thread);
    load_tile<tile.rows, tile.head_size, L::pitch, L::threads>(stages, work.out, work.first_row, problem.in_out,
                                                               thread);
    cp_async_wait_all();
    __syncthreads();
    const int first_query = work.first_row + warp * 16, first_own = first_query + spread(lane / 4);
    Stats<T> stats[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int at = (warp * 16 + spread(lane / 4) + 8 * r) * L::pitch + t * width;
        // D takes dout as rounded for dP: dS is a small difference of the two, in which a shared rounding cancels.
        T d = 0;
#pragma unroll
        for (int step = 0; step < L::depth_steps; ++step) {
            const auto x = Vector<T, width>::load(stages + at + step * 4 * width);
            const auto y = Vector<T, width>::load(dout + at + step * 4 * width);
#pragma unroll
            for (int i = 0; i < width; ++i) d = fma(x.at[i], operand(y.at[i]), d);
        }
        stats[r] = stats_of(problem, work, first_own + 8 * r, lanes_sum<4>(d));
        if (t == 0) work.stats[first_own + 8 * r] = stats[r];
    }
    __syncthreads();  // all warps are done with out
    load(0, 0);

    const OwnRows<T, L> own_q(q, warp, lane), own_dout(dout, warp, lane);
    T dq[tile.head_size / 8][4] = {};
    for (int key_tile = 0; key_tile < key_tiles; ++key_tile) {
        cp_async_wait_all();
        __syncthreads();  // this stage has arrived, and all warps are done with the other one
        if (key_tile + 1 < key_tiles) load(key_tile + 1, (key_tile + 1) % 2);
        const T* const k_tile = stages + key_tile % 2 * L::stage_elements;
#pragma unroll 1
        for (int chunk = 0; chunk < tile.others; chunk += tile.chunk) {
            const int first_key = key_tile * tile.others + chunk;
            if (first_key >= first_query + 16) break;
            const T* const k = k_tile + chunk * L::pitch;
            T p[tile.chunk / 8][4] = {}, ds[tile.chunk / 8][4];
#pragma unroll
            for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) ds[n][i] = -stats[i / 2].d;
            multiply_rows(p, own_q, k, lane);
            multiply_rows(ds, own_dout, k + L::other_elements, lane);
            if (first_key + tile.chunk > first_query + 1) {
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        if (first_key + n * 8 + t + i % 2 * 4 > first_own + i / 2 * 8) p[n][i] = -infinity<T>;
            }
#pragma unroll
            for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    ds[n][i] *= power_of_two(fma(p[n][i], problem.scale_log2, -stats[i / 2].lse_log2));
            add_weighted_rows<L>(dq, ds, k, lane);
        }
    }
    store_sums(work.dq, problem.in_qkv, first_query, dq, problem.scale, lane);
}

/// Computes dk, dv or both for a block of keys. Runs after attention_dq_mma, whose stats it reads.
template <class T, class Tiles, int index, KeyParts parts>
__global__ __launch_bounds__(
    GradientLayout8Deep<T, Tiles, index>::threads,
    GradientLayout8Deep<T, Tiles, index>::tile.blocks_per_sm) void attention_dkdv_mma(GradientProblem<T> problem) {
    using L = GradientLayout8Deep<T, Tiles, index>;
    constexpr GradientTile tile = L::tile;
    constexpr bool makes_dk = parts != KeyParts::dv, makes_dv = parts != KeyParts::dk;
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

    const int first_key = work.first_row + warp * 16, first_own = first_key + spread(lane / 4);
    const OwnRows<T, L> own_k(k, warp, lane), own_v(v, warp, lane);
    T dk[makes_dk ? tile.head_size / 8 : 1][4] = {}, dv[makes_dv ? tile.head_size / 8 : 1][4] = {};
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
            T p[tile.chunk / 8][4] = {};
            multiply_rows(p, own_k, q, lane);
            if (first_key + 16 > first_query + 1) {
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        if (first_own + i / 2 * 8 > first_query + n * 8 + t + i % 2 * 4) p[n][i] = -infinity<T>;
            }
#pragma unroll
            for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    p[n][i] = power_of_two(
                        fma(p[n][i], problem.scale_log2, -tile_stats[chunk + n * 8 + t + i % 2 * 4].lse_log2));
            if constexpr (makes_dv) add_weighted_rows<L>(dv, p, dout, lane);
            if constexpr (makes_dk) {
                T ds[tile.chunk / 8][4];
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) ds[n][i] = -tile_stats[chunk + n * 8 + t + i % 2 * 4].d;
                multiply_rows(ds, own_v, dout, lane);
#pragma unroll
                for (int n = 0; n < tile.chunk / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) ds[n][i] *= p[n][i];
                add_weighted_rows<L>(dk, ds, q, lane);
            }
        }
    }
    if constexpr (makes_dk) store_sums(work.dk, problem.in_qkv, first_key, dk, problem.scale, lane);
    if constexpr (makes_dv) store_sums(work.dv, problem.in_qkv, first_key, dv, T(1), lane);
}

template <class T, class Tiles, int index>
constexpr GradientKernel gradient_kernel_8deep() {
    using L = GradientLayout8Deep<T, Tiles, index>;
    constexpr auto dq = attention_dq_mma<T, Tiles, index>;
    if constexpr (sizeof(T) == 8 && L::tile.head_size > 64)
        return {"attention_gradient_mma", L::tile, gradient_smem_bytes<L>,
                launch_gradient<T, L, dq, attention_dkdv_mma<T, Tiles, index, KeyParts::dk>,
                                attention_dkdv_mma<T, Tiles, index, KeyParts::dv>>};
    else
        return {"attention_gradient_mma", L::tile, gradient_smem_bytes<L>,
                launch_gradient<T, L, dq, attention_dkdv_mma<T, Tiles, index, KeyParts::dk_and_dv>>};
}

template <class T, class Tiles, std::size_t... i>
constexpr std::array<GradientKernel, sizeof...(i)> gradient_kernels_8deep(std::index_sequence<i...>) {
    return {gradient_kernel_8deep<T, Tiles, i>()...};
}

}  // namespace kbench::cuda::attention
