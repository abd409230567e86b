// Fused causal attention in fp32 on the FMA units. A warp owns 32 query rows; its lanes form 4 rows x 8 columns, and a
// lane computes 8 rows by keys / 8 scores and by head_size / 8 outputs, as in a register-tiled GEMM.
#include "kernels/attention/problem.cuh"
#include "kernels/attention/softmax.cuh"

namespace kbench::cuda::attention {
namespace {

constexpr Tile tiles[] = {
    {.head_size = 32, .query_rows = 64, .keys = 32, .key_groups = 2, .blocks_per_sm = 2},
    // With few rows, tiles of half the rows: each group is one warp, and the longest chain is 8 key blocks instead
    // of 16.
    {.head_size = 64, .query_rows = 32, .keys = 32, .key_groups = 4, .blocks_per_sm = 2, .most_rows = few_rows},
    // Two warps share each tile of k and v. With only one such group, a block could not keep four schedulers busy.
    {.head_size = 64, .query_rows = 64, .keys = 32, .key_groups = 2, .blocks_per_sm = 2},
    {.head_size = 96, .query_rows = 64, .keys = 32, .key_groups = 2, .blocks_per_sm = 2},
    // 121 kB of shared memory: one block an SM.
    {.head_size = 128, .query_rows = 64, .keys = 32, .key_groups = 2, .blocks_per_sm = 1},
};

/// Keys whose probabilities are exchanged at a time, and the pitch of their rows.
constexpr int p_keys = 32, p_pitch = p_keys + 8;

/// Sizes that follow from a tile. The pitches avoid bank conflicts between rows that are accessed together: 8 rows of k
/// or 4 of q in 16-byte accesses, 4 rows of p in accesses of 8 neighbouring keys.
template <int index>
struct Layout {
    static constexpr Tile tile = tiles[index];
    static constexpr int group_threads = tile.query_rows / 32 * warp_size;
    static constexpr int threads = group_threads * tile.key_groups;
    static constexpr int qk_pitch = tile.head_size + 4, v_pitch = tile.head_size;
    static constexpr int q_elements = tile.query_rows * qk_pitch;
    static constexpr int k_elements = tile.keys * qk_pitch;
    static constexpr int v_elements = tile.keys * v_pitch;
    static constexpr int group_elements = k_elements + v_elements + tile.query_rows * p_pitch;
    /// Rows of v that a lane holds at a time: the output leaves at most 64 registers for them.
    static constexpr int v_rows = tile.head_size <= 64 ? 4 : 2;
    static constexpr int smem_bytes = 4 * (q_elements + tile.key_groups * group_elements);
    static_assert(merge_bytes<float, 8, tile.head_size / 8>(tile.key_groups, group_threads) <= smem_bytes);
};

/// Masks the scores of keys behind their row. A lane's rows are 4 apart from `row` on, and its keys 8 apart.
template <int keys>
__device__ __forceinline__ void mask_later_keys(float (&scores)[8][keys], int first_key, int row) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < keys; ++c)
            if (first_key + 8 * c > row + 4 * r) scores[r][c] = -infinity<float>;
}

template <int index>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_fma(Problem<float> problem) {
    using L = Layout<index>;
    constexpr Tile tile = L::tile;
    constexpr int columns = tile.head_size / 8, keys = tile.keys / 8;
    extern __shared__ __align__(16) float smem[];
    const int group = threadIdx.x / L::group_threads, thread = threadIdx.x % L::group_threads;
    const int warp = thread / warp_size, lane_row = thread % warp_size / 8, lane_column = thread % 8;
    float* const q = smem;
    float* const k_tile = smem + L::q_elements + group * L::group_elements;
    float* const v_tile = k_tile + L::k_elements;
    float* const p = v_tile + L::v_elements;

    const Work<float> work = work_of_block<tile.query_rows>(problem);
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

    // Row r of a lane is row lane_row + 4 r of its warp; key c of a lane is key lane_column + 8 c of the block.
    const int row = warp * 32 + lane_row;
    const float* const k = k_tile + lane_column * L::qk_pitch;
    const float* const v = v_tile + lane_column * 4;
    const float* const q_lane = q + row * L::qk_pitch;
    float* const p_lane = p + row * p_pitch;
    Accumulator<float, 8, columns> accumulator;
    // Copies of v overlap q k^T, copies of the next k overlap p v. One buffer of each is enough, which leaves room
    // for another block on the SM.
    for (int block = group; block < key_blocks; block += tile.key_groups) {
        cp_async_wait_all();
        group_barrier<tile.key_groups, L::group_threads>(group);  // k has arrived, and all warps are done with v
        load_v(block);

        float scores[8][keys] = {};
#pragma unroll 4
        for (int d = 0; d < tile.head_size; d += 4) {
            Vector<float, 4> key[keys];
#pragma unroll
            for (int c = 0; c < keys; ++c) key[c] = Vector<float, 4>::load(k + c * 8 * L::qk_pitch + d);
#pragma unroll
            for (int r = 0; r < 8; ++r) {
                const auto query = Vector<float, 4>::load(q_lane + r * 4 * L::qk_pitch + d);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int c = 0; c < keys; ++c) scores[r][c] = fmaf(query.at[i], key[c].at[i], scores[r][c]);
            }
        }
        if ((block + 1) * tile.keys > work.first_row + warp * 32) {
            const int first_key = block * tile.keys + lane_column - work.first_row;
            mask_later_keys(scores, first_key, row);
        }
        cp_async_wait_all();
        group_barrier<tile.key_groups, L::group_threads>(group);  // v has arrived, and all warps are done with k
        if (block + tile.key_groups < key_blocks) load_k(block + tile.key_groups);
        online_softmax<8>(scores, accumulator, problem.scale_log2);

        // Lanes of a row exchange probabilities through memory that only this warp uses, 32 keys at a time.
#pragma unroll
        for (int first = 0; first < tile.keys; first += p_keys) {
            __syncwarp();
#pragma unroll
            for (int r = 0; r < 8; ++r)
#pragma unroll
                for (int c = 0; c < p_keys / 8; ++c)
                    p_lane[r * 4 * p_pitch + lane_column + 8 * c] = scores[r][first / 8 + c];
            __syncwarp();
#pragma unroll 2
            for (int key = 0; key < p_keys; key += L::v_rows) {
                Vector<float, 4> value[L::v_rows][columns / 4];
#pragma unroll
                for (int i = 0; i < L::v_rows; ++i)
#pragma unroll
                    for (int c = 0; c < columns / 4; ++c)
                        value[i][c] = Vector<float, 4>::load(v + (first + key + i) * L::v_pitch + c * 32);
#pragma unroll
                for (int r = 0; r < 8; ++r) {
                    const auto weight = Vector<float, L::v_rows>::load(p_lane + r * 4 * p_pitch + key);
#pragma unroll
                    for (int i = 0; i < L::v_rows; ++i)
#pragma unroll
                        for (int c = 0; c < columns; ++c)
                            accumulator.out[r][c] =
                                fmaf(weight.at[i], value[i][c / 4].at[c % 4], accumulator.out[r][c]);
                }
            }
        }
    }
    merge_groups<tile.key_groups, L::group_threads>(accumulator, problem.scale_log2, smem, group, thread);
    if (group > 0) return;
    if (problem.lse != nullptr)
        store_log_sum_exp<8, 4>(problem.lse + std::int64_t{work.sequence} * problem.seq, problem.seq, accumulator,
                                work.first_row + row, lane_column, problem.scale_log2);
    normalise<8>(accumulator);
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int out_row = work.first_row + row + 4 * r;
        if (out_row >= problem.seq) break;
#pragma unroll
        for (int c = 0; c < columns / 4; ++c) {
            const float* const from = accumulator.out[r] + 4 * c;
            alignas(16) const float values[4] = {from[0], from[1], from[2], from[3]};
            store<4>(work.out + out_row * work.out_stride, c * 32 + lane_column * 4, values, problem);
        }
    }
}

template <std::size_t... i>
constexpr std::array<Kernel, sizeof...(i)> kernels(std::index_sequence<i...>) {
    return {Kernel{"attention_fma", tiles[i], Layout<i>::smem_bytes, launch<attention_fma<i>, float, Layout<i>>}...};
}

}  // namespace

Kernels fp32_kernels() {
    static constexpr auto rows = kernels(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
