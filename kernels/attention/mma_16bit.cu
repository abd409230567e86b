// Fused causal attention in fp16 and bf16 on tensor cores: mma.sync.m16n8k16 with fp32 accumulators, operands through
// ldmatrix. A warp owns 16 query rows and keeps scores and output in registers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/attention/problem.cuh"
#include "kernels/attention/softmax.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::attention {
namespace {

constexpr Tile tiles[] = {
    {.head_size = 32, .query_rows = 64, .keys = 64, .key_groups = 2, .blocks_per_sm = 2},
    // With few rows, two groups halve the longest chain of key blocks: 20 heads of 1024 rows take 19.5 us where one
    // group takes 22.9 (H200, fp16). With 80 heads one group takes 52.5 us where two take 58.4.
    {.head_size = 64, .query_rows = 64, .keys = 64, .key_groups = 2, .blocks_per_sm = 2, .most_rows = few_rows},
    {.head_size = 64, .query_rows = 64, .keys = 64, .key_groups = 1, .blocks_per_sm = 4},
    // Output and q take 96 registers or more, so only two blocks fit an SM whatever the number of keys.
    {.head_size = 96, .query_rows = 64, .keys = 64, .key_groups = 1, .blocks_per_sm = 2},
    {.head_size = 128, .query_rows = 64, .keys = 64, .key_groups = 1, .blocks_per_sm = 2},
};

/// Sizes that follow from a tile. A pitch of an odd number of 16-byte vectors puts the 8 rows that one ldmatrix reads
/// together into different banks.
template <int index>
struct Layout {
    static constexpr Tile tile = tiles[index];
    static constexpr int pitch = tile.head_size + 8;
    static constexpr int group_threads = tile.query_rows / 16 * warp_size;
    static constexpr int threads = group_threads * tile.key_groups;
    static constexpr int q_elements = tile.query_rows * pitch;
    static constexpr int kv_elements = tile.keys * pitch;   // k or v
    static constexpr int group_elements = 4 * kv_elements;  // two stages of k and v
    static constexpr int loop_bytes = 2 * (q_elements + tile.key_groups * group_elements);
    /// The merge has memory of its own. It could reuse the loop's, but racecheck (CUDA 13.0) does not see that
    /// __syncthreads orders groups that met at other barriers before; real races would hide among its false ones.
    static constexpr int smem_bytes =
        loop_bytes + merge_bytes<float, 2, tile.head_size / 4>(tile.key_groups, group_threads);
};

template <class T, int index>
__global__ __launch_bounds__(Layout<index>::threads,
                             tiles[index].blocks_per_sm) void attention_mma(Problem<T> problem) {
    using L = Layout<index>;
    constexpr Tile tile = L::tile;
    constexpr int depth_steps = tile.head_size / 16, key_steps = tile.keys / 16, columns = tile.head_size / 4;
    extern __shared__ __align__(16) unsigned char smem[];
    const int group = threadIdx.x / L::group_threads, thread = threadIdx.x % L::group_threads;
    const int warp = thread / warp_size, lane = thread % warp_size;
    T* const q = reinterpret_cast<T*>(smem);
    T* const kv = q + L::q_elements + group * L::group_elements;

    const Work<T> work = work_of_block<tile.query_rows>(problem);
    const int key_blocks = (min(work.first_row + tile.query_rows, problem.seq) + tile.keys - 1) / tile.keys;
    const auto load_keys = [&](int block, int stage) {
        T* k = kv + stage * 2 * L::kv_elements;
        load_tile<tile.keys, tile.head_size, L::pitch, L::group_threads>(k, work.k, block * tile.keys, problem, thread);
        load_tile<tile.keys, tile.head_size, L::pitch, L::group_threads>(k + L::kv_elements, work.v, block * tile.keys,
                                                                         problem, thread);
    };
    load_tile<tile.query_rows, tile.head_size, L::pitch, L::threads>(q, work.q, work.first_row, problem, threadIdx.x);
    if (group < key_blocks) load_keys(group, 0);
    cp_async_wait_all();
    __syncthreads();

    unsigned q_fragments[depth_steps][4];
#pragma unroll
    for (int d = 0; d < depth_steps; ++d)
        ldmatrix_x4(q_fragments[d], q + (warp * 16 + lane % 16) * L::pitch + d * 16 + lane / 16 * 8);

    const int row = work.first_row + warp * 16 + lane / 4;  // and row + 8
    const int k_lane = (lane / 16 * 8 + lane % 8) * L::pitch + lane / 8 % 2 * 8;
    const int v_lane = lane % 16 * L::pitch + lane / 16 * 8;
    Accumulator<float, 2, columns> accumulator;
    int stage = 0;
    for (int block = group; block < key_blocks; block += tile.key_groups, stage ^= 1) {
        cp_async_wait_all();
        group_barrier<tile.key_groups, L::group_threads>(
            group);  // this stage has arrived, and all warps are done with the other one
        if (block + tile.key_groups < key_blocks) load_keys(block + tile.key_groups, stage ^ 1);
        const T* const k = kv + stage * 2 * L::kv_elements + k_lane;
        const T* const v = kv + (stage * 2 + 1) * L::kv_elements + v_lane;

        float scores[2][tile.keys / 4] = {};
#pragma unroll
        for (int d = 0; d < depth_steps; ++d) {
#pragma unroll
            for (int n = 0; n < key_steps; ++n) {
                unsigned b[4];
                ldmatrix_x4(b, k + n * 16 * L::pitch + d * 16);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int c = n * 4 + half * 2;
                    Mma16Bit<T>::mma(scores[0][c], scores[0][c + 1], scores[1][c], scores[1][c + 1], q_fragments[d],
                                     b[2 * half], b[2 * half + 1]);
                }
            }
        }
        const int first_key = block * tile.keys + lane % 4 * 2;
        if ((block + 1) * tile.keys > work.first_row + warp * 16) {
#pragma unroll
            for (int r = 0; r < 2; ++r)
#pragma unroll
                for (int c = 0; c < tile.keys / 4; ++c)
                    if (first_key + c / 2 * 8 + c % 2 > row + 8 * r) scores[r][c] = -infinity<float>;
        }
        online_softmax<4>(scores, accumulator, problem.scale_log2);

#pragma unroll
        for (int n = 0; n < key_steps; ++n) {
            const unsigned p[4] = {Mma16Bit<T>::pack(scores[0][4 * n], scores[0][4 * n + 1]),
                                   Mma16Bit<T>::pack(scores[1][4 * n], scores[1][4 * n + 1]),
                                   Mma16Bit<T>::pack(scores[0][4 * n + 2], scores[0][4 * n + 3]),
                                   Mma16Bit<T>::pack(scores[1][4 * n + 2], scores[1][4 * n + 3])};
#pragma unroll
            for (int d = 0; d < depth_steps; ++d) {
                unsigned b[4];
                ldmatrix_x4_transposed(b, v + n * 16 * L::pitch + d * 16);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int c = d * 4 + half * 2;
                    Mma16Bit<T>::mma(accumulator.out[0][c], accumulator.out[0][c + 1], accumulator.out[1][c],
                                     accumulator.out[1][c + 1], p, b[2 * half], b[2 * half + 1]);
                }
            }
        }
    }
    merge_groups<tile.key_groups, L::group_threads>(accumulator, problem.scale_log2,
                                                    reinterpret_cast<float*>(smem + L::loop_bytes), group, thread);
    if (group > 0) return;
    if (problem.lse != nullptr)
        store_log_sum_exp<4, 8>(problem.lse + std::int64_t{work.sequence} * problem.seq, problem.seq, accumulator, row,
                                lane % 4, problem.scale_log2);
    normalise<4>(accumulator);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (row + 8 * r >= problem.seq) break;
        T* const out = work.out + (row + 8 * r) * work.out_stride;
#pragma unroll
        for (int c = 0; c < columns; c += 2) {
            const unsigned pair = Mma16Bit<T>::pack(accumulator.out[r][c], accumulator.out[r][c + 1]);
            store<2>(out, c / 2 * 8 + lane % 4 * 2, reinterpret_cast<const T*>(&pair), problem);
        }
    }
}

template <class T, std::size_t... i>
constexpr std::array<Kernel, sizeof...(i)> kernels(std::index_sequence<i...>) {
    return {Kernel{"attention_mma", tiles[i], Layout<i>::smem_bytes, launch<attention_mma<T, i>, T, Layout<i>>}...};
}

}  // namespace

Kernels fp16_kernels() {
    static constexpr auto rows = kernels<__half>(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

Kernels bf16_kernels() {
    static constexpr auto rows = kernels<__nv_bfloat16>(std::make_index_sequence<std::size(tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
