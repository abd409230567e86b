// Fused causal attention on m16n8k8 tensor core products, which tf32 and fp64 share: the fragments are the same, with
// elements of 4 or 8 bytes. A warp owns 16 query rows and keeps scores and output in registers.
//
// The order of terms in a product is free, so it is chosen for the loads. In q k^T, lane t of four takes 16
// neighbouring bytes of a row of q and of k and feeds them, two elements at a time, as depths t and t + 4. In p v, a
// lane has probabilities of keys 2t and 2t + 1, which become depths t and t + 4, and its columns are 16 neighbouring
// bytes of v. So every access to shared memory is 16 bytes wide and probabilities never change lanes.
#pragma once

#include "kernels/attention/operand.cuh"
#include "kernels/attention/problem.cuh"
#include "kernels/attention/softmax.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::attention {

/// Sizes that follow from a tile of `Tiles`, the table of a precision. One access reads 2 rows of q or k, 64 bytes of
/// each, or 4 rows of v that are 2 apart, 32 bytes of each; the pitches put these into different banks.
template <class T, class Tiles, int index>
struct Layout8Deep {
    static constexpr Tile tile = Tiles::tiles[index];
    static constexpr int group_threads = tile.query_rows / 16 * warp_size;
    static constexpr int threads = group_threads * tile.key_groups;
    static constexpr int qk_pitch = tile.head_size + 64 / static_cast<int>(sizeof(T));
    static constexpr int v_pitch = tile.head_size + vector_size<T>;
    static constexpr int q_elements = tile.query_rows * qk_pitch;
    static constexpr int k_elements = tile.keys * qk_pitch;
    static constexpr int group_elements = k_elements + tile.keys * v_pitch;
    static constexpr int smem_bytes = static_cast<int>(sizeof(T)) * (q_elements + tile.key_groups * group_elements);
    static_assert(merge_bytes<T, 2, tile.head_size / 4>(tile.key_groups, group_threads) <= smem_bytes);
    /// In fp64, q in registers would keep a third block off the SM, so it is read again for every key block.
    static constexpr bool q_in_registers = sizeof(T) == 4;
};

/// Adds a step of q k^T to a lane's scores: its rows of q times all keys of the tile, at the depths of step d.
template <class L, class T, int width, int columns>
__device__ __forceinline__ void add_scores(T (&scores)[2][columns], const Vector<T, width> (&rows)[2], const T* k,
                                           int d) {
#pragma unroll
    for (int n = 0; n < L::tile.keys / 8; ++n) {
        const auto keys = Vector<T, width>::load(k + n * 8 * L::qk_pitch + d * 4 * width);
#pragma unroll
        for (int i = 0; i < width; i += 2) {
            const T a[4] = {rows[0].at[i], rows[1].at[i], rows[0].at[i + 1], rows[1].at[i + 1]};
            mma_16x8x8(scores[0][2 * n], scores[0][2 * n + 1], scores[1][2 * n], scores[1][2 * n + 1], a,
                       operand(keys.at[i]), operand(keys.at[i + 1]));
        }
    }
}

/// Masks the scores of keys behind their row. A lane has rows `row` and row + 8, and pairs of keys 8 apart.
template <class T, int columns>
__device__ __forceinline__ void mask_later_keys(T (&scores)[2][columns], int first_key, int row) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int c = 0; c < columns; ++c)
            if (first_key + c / 2 * 8 + c % 2 > row + 8 * r) scores[r][c] = -infinity<T>;
}

template <class T, class Tiles, int index>
__global__ __launch_bounds__(Layout8Deep<T, Tiles, index>::threads,
                             Layout8Deep<T, Tiles, index>::tile.blocks_per_sm) void attention_mma(Problem<T> problem) {
    using L = Layout8Deep<T, Tiles, index>;
    constexpr Tile tile = L::tile;
    constexpr int width = vector_size<T>, depth_steps = tile.head_size / (4 * width), columns = tile.head_size / 4;
    extern __shared__ __align__(16) unsigned char smem[];
    const int group = threadIdx.x / L::group_threads, thread = threadIdx.x % L::group_threads;
    const int warp = thread / warp_size, lane = thread % warp_size, g = lane / 4, t = lane % 4;
    T* const q = reinterpret_cast<T*>(smem);
    T* const k_tile = q + L::q_elements + group * L::group_elements;
    T* const v_tile = k_tile + L::k_elements;

    const Work<T> work = work_of_block<tile.query_rows>(problem);
    const int key_blocks = (min(work.first_row + tile.query_rows, problem.seq) + tile.keys - 1) / tile.keys;
    const auto load_k = [&](int block) {
        load_tile<tile.keys, tile.head_size, L::qk_pitch, L::group_threads>(k_tile, work.k, block * tile.keys, problem,
                                                                            thread);
    };
    const auto load_v = [&](int block) {
        load_tile<tile.keys, tile.head_size, L::v_pitch, L::group_threads>(v_tile, work.v, block * tile.keys, problem,
                                                                           thread);
    };
    load_tile<tile.query_rows, tile.head_size, L::qk_pitch, L::threads>(q, work.q, work.first_row, problem,
                                                                        threadIdx.x);
    if (group < key_blocks) load_k(group);
    cp_async_wait_all();
    __syncthreads();

    const T* const k = k_tile + g * L::qk_pitch + t * width;
    const T* const v = v_tile + 2 * t * L::v_pitch + g * width;
    const T* const q_lane = q + (warp * 16 + g) * L::qk_pitch + t * width;
    const auto load_q = [&](int d, Vector<T, width>(&rows)[2]) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            rows[r] = Vector<T, width>::load(q_lane + r * 8 * L::qk_pitch + d * 4 * width);
#pragma unroll
            for (T& value : rows[r].at) value = operand(value);
        }
    };
    Vector<T, width> q_rows[L::q_in_registers ? depth_steps : 1][2];
    if constexpr (L::q_in_registers) {
#pragma unroll
        for (int d = 0; d < depth_steps; ++d) load_q(d, q_rows[d]);
    }

    const int row = work.first_row + warp * 16 + g;  // and row + 8
    Accumulator<T, 2, columns> accumulator;
    // Copies of v overlap q k^T, copies of the next k overlap p v. One buffer of each is enough, which leaves room
    // for another block on the SM.
    for (int block = group; block < key_blocks; block += tile.key_groups) {
        cp_async_wait_all();
        group_barrier<tile.key_groups, L::group_threads>(group);  // k has arrived, and all warps are done with v
        load_v(block);
        T scores[2][tile.keys / 4] = {};
#pragma unroll
        for (int d = 0; d < depth_steps; ++d) {
            if constexpr (!L::q_in_registers) load_q(d, q_rows[0]);
            const Vector<T, width>(&rows)[2] = q_rows[L::q_in_registers ? d : 0];
            add_scores<L>(scores, rows, k, d);
        }
        const int first_key = block * tile.keys + 2 * t;
        if ((block + 1) * tile.keys > work.first_row + warp * 16) mask_later_keys(scores, first_key, row);
        cp_async_wait_all();
        group_barrier<tile.key_groups, L::group_threads>(group);  // v has arrived, and all warps are done with k
        if (block + tile.key_groups < key_blocks) load_k(block + tile.key_groups);
        online_softmax<4>(scores, accumulator, problem.scale_log2, [](T p) { return operand(p); });

#pragma unroll
        for (int n = 0; n < tile.keys / 8; ++n) {
            const T p[4] = {scores[0][2 * n], scores[1][2 * n], scores[0][2 * n + 1], scores[1][2 * n + 1]};
#pragma unroll
            for (int d = 0; d < columns / 2 / width; ++d) {
                const T* const source = v + n * 8 * L::v_pitch + d * 8 * width;
                const Vector<T, width> even = Vector<T, width>::load(source),
                                       odd = Vector<T, width>::load(source + L::v_pitch);
#pragma unroll
                for (int i = 0; i < width; ++i) {
                    const int c = 2 * (d * width + i);
                    mma_16x8x8(accumulator.out[0][c], accumulator.out[0][c + 1], accumulator.out[1][c],
                               accumulator.out[1][c + 1], p, operand(even.at[i]), operand(odd.at[i]));
                }
            }
        }
    }
    merge_groups<tile.key_groups, L::group_threads>(accumulator, problem.scale_log2, q, group, thread);
    if (group > 0) return;
    if (problem.lse != nullptr)
        store_log_sum_exp<4, 8>(problem.lse + std::int64_t{work.sequence} * problem.seq, problem.seq, accumulator, row,
                                t, problem.scale_log2);
    normalise<4>(accumulator);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (row + 8 * r >= problem.seq) break;
        T* const out = work.out + (row + 8 * r) * work.out_stride;
#pragma unroll
        for (int d = 0; d < columns / 2 / width; ++d) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                Vector<T, width> values;
#pragma unroll
                for (int i = 0; i < width; ++i) values.at[i] = accumulator.out[r][2 * (d * width + i) + e];
                store<width>(out, d * 8 * width + (2 * t + e) * width, values.at, problem);
            }
        }
    }
}

template <class T, class Tiles, std::size_t... i>
constexpr std::array<Kernel, sizeof...(i)> kernels_8deep(std::index_sequence<i...>) {
    return {Kernel{"attention_mma", Tiles::tiles[i], Layout8Deep<T, Tiles, i>::smem_bytes,
                   launch<attention_mma<T, Tiles, i>, T, Layout8Deep<T, Tiles, i>>}...};
}

}  // namespace kbench::cuda::attention
