// The backward attention kernels' view of their problem: which rows a block owns, what the kernel of the queries leaves
// for that of the keys, and how both are launched. Nothing here depends on how the products are computed.
#pragma once

#include "kernels/attention/gradient_kernel.h"
#include "kernels/attention/problem.cuh"

namespace kbench::cuda::attention {

/// Of one query, what turns its scores into P and dP into dS. Without such a query lse is infinite and D 0: P is 0.
template <class T>
struct alignas(2 * sizeof(Scalar<T>)) Stats {
    Scalar<T> lse_log2;  ///< lse * log2(e)
    Scalar<T> d;
};

/// Rows `row_stride` elements apart, as load_tile and store want them described.
struct Rows {
    std::int64_t row_stride;
    int seq, head_size;
    bool vectorised;  ///< Rows of every head begin at multiples of 16 bytes and have whole vectors.
};

template <class T>
struct GradientProblem {
    const T *qkv, *out, *dout;
    const Scalar<T>* lse;
    T* dqkv;
    Stats<T>* stats;  ///< [batch * heads, padded_seq]
    Rows in_qkv, in_out;
    int heads, padded_seq;
    int tiles;  ///< For each head.
    int sms;
    Scalar<T> scale, scale_log2;
};

/// What a kernel of keys makes. Of wide elements and heads the sums of both may not find room.
enum class KeyParts { dk_and_dv, dk, dv };

/// The rows that a block owns, and where its head lies.
template <class T>
struct GradientWork {
    const T *q, *k, *v, *out, *dout;  ///< Row 0 of the head.
    T *dq, *dk, *dv;
    const Scalar<T>* lse;
    Stats<T>* stats;
    int first_row;
};

/// Heaviest tiles first: of queries the last, which have the most keys, and of keys the first.
template <int rows, bool owns_queries, class T>
__device__ GradientWork<T> gradient_work_of_block(const GradientProblem<T>& problem) {
    const int rank = rank_of_block(problem.sms), sequences = gridDim.x / problem.tiles;
    const int sequence = rank % sequences, head = sequence % problem.heads;
    const int tile = owns_queries ? problem.tiles - 1 - rank / sequences : rank / sequences;
    const std::int64_t row = std::int64_t{sequence / problem.heads} * problem.in_qkv.seq;
    const std::int64_t width = problem.in_out.row_stride;
    const std::int64_t in_qkv = row * problem.in_qkv.row_stride + head * problem.in_qkv.head_size;
    const std::int64_t in_out = row * width + head * problem.in_qkv.head_size;
    const T* q = problem.qkv + in_qkv;
    T* dq = problem.dqkv + in_qkv;
    return {q,
            q + width,
            q + 2 * width,
            problem.out + in_out,
            problem.dout + in_out,
            dq,
            dq + width,
            dq + 2 * width,
            problem.lse + std::int64_t{sequence} * problem.in_qkv.seq,
            problem.stats + std::int64_t{sequence} * problem.padded_seq,
            tile * rows};
}

/// What the row of a query has once its D is known.
template <class T>
__device__ Stats<T> stats_of(const GradientProblem<T>& problem, const GradientWork<T>& work, int query, Scalar<T> d) {
    constexpr Scalar<T> log2_e = Scalar<T>(1.44269504088896340735992468100189214);
    return {query < problem.in_qkv.seq ? work.lse[query] * log2_e : Scalar<T>(__builtin_huge_val()), d};
}

/// Start to copy `rows` rows of q and, behind them, of dout; of k and, behind them, of v.
template <class Layout, int rows, class T>
__device__ void load_q_and_dout(T* smem, const GradientWork<T>& work, int first_row, const GradientProblem<T>& problem,
                                int thread) {
    constexpr int columns = Layout::tile.head_size, pitch = Layout::pitch, threads = Layout::threads;
    load_tile<rows, columns, pitch, threads>(smem, work.q, first_row, problem.in_qkv, thread);
    load_tile<rows, columns, pitch, threads>(smem + rows * pitch, work.dout, first_row, problem.in_out, thread);
}
template <class Layout, int rows, class T>
__device__ void load_k_and_v(T* smem, const GradientWork<T>& work, int first_row, const GradientProblem<T>& problem,
                             int thread) {
    constexpr int columns = Layout::tile.head_size, pitch = Layout::pitch, threads = Layout::threads;
    load_tile<rows, columns, pitch, threads>(smem, work.k, first_row, problem.in_qkv, thread);
    load_tile<rows, columns, pitch, threads>(smem + rows * pitch, work.v, first_row, problem.in_qkv, thread);
}

/// Starts to copy the stats of `rows` queries.
template <int rows, int threads, class T>
__device__ void load_stats(Stats<T>* smem, const Stats<T>* from, int thread) {
    constexpr int at_once = 16 / static_cast<int>(sizeof(Stats<T>));
    for (int i = thread * at_once; i < rows; i += threads * at_once) cp_async_16(smem + i, from + i);
}

/// What the kernels of a tile take of shared memory, at the most.
template <class Layout>
inline constexpr int gradient_smem_bytes = std::max(Layout::query_smem_bytes, Layout::key_smem_bytes);

/// Launches `of_queries`, then those `of_keys`, all of which take a GradientProblem<T>, with a block for each tile of
/// each head. `Layout` has their tile, threads and bytes of shared memory.
template <class T, class Layout, auto of_queries, auto... of_keys>
void launch_gradient(const AttentionGradientArguments& arguments, cudaStream_t stream) {
    // An SM of an A100 has 164 KiB, of which each block takes one for itself.
    constexpr int most_bytes = 163 << 10;
    static_assert(Layout::query_smem_bytes <= most_bytes && Layout::key_smem_bytes <= most_bytes);
    const int sms = prepare<of_queries, Layout::query_smem_bytes>();
    (prepare<of_keys, Layout::key_smem_bytes>(), ...);
    const std::int64_t width = arguments.heads * arguments.head_size;
    const std::int64_t tiles = (arguments.seq + Layout::tile.rows - 1) / Layout::tile.rows;
    const auto seq = static_cast<int>(arguments.seq), head_size = static_cast<int>(arguments.head_size);
    const bool vectorised = arguments.head_size % vector_size<T> == 0;
    GradientProblem<T> problem{};
    problem.qkv = static_cast<const T*>(arguments.qkv);
    problem.out = static_cast<const T*>(arguments.out);
    problem.dout = static_cast<const T*>(arguments.dout);
    problem.lse = static_cast<const Scalar<T>*>(arguments.lse);
    problem.dqkv = static_cast<T*>(arguments.dqkv);
    problem.stats = static_cast<Stats<T>*>(arguments.workspace);
    problem.in_qkv = Rows{3 * width, seq, head_size, vectorised};
    problem.in_out = Rows{width, seq, head_size, vectorised};
    problem.heads = static_cast<int>(arguments.heads);
    problem.padded_seq = static_cast<int>((arguments.seq + stats_rows - 1) / stats_rows * stats_rows);
    problem.tiles = static_cast<int>(tiles);
    problem.sms = sms;
    problem.scale = static_cast<Scalar<T>>(arguments.scale);
    problem.scale_log2 = scale_log2<Scalar<T>>(arguments.scale);
    const auto blocks = static_cast<unsigned>(tiles * arguments.batch * arguments.heads);
    of_queries<<<blocks, Layout::threads, Layout::query_smem_bytes, stream>>>(problem);
    KBENCH_CUDA_LAUNCHED("attention_backward's dq");
    const auto launch_one = [&](auto kernel) {
        kernel<<<blocks, Layout::threads, Layout::key_smem_bytes, stream>>>(problem);
        KBENCH_CUDA_LAUNCHED("attention_backward's dk and dv");
    };
    (launch_one(of_keys), ...);
}

}  // namespace kbench::cuda::attention
