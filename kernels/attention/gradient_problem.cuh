// The backward attention kernels' view of their problem: which rows a block owns, which stats the dq kernel leaves for
// the kernels of keys, and how they are launched. Nothing here depends on how the products are computed.
#pragma once

#include "kernels/attention/gradient_kernel.h"
#include "kernels/attention/problem.cuh"

namespace kbench::cuda::attention {

/// What turns the scores of one query into P, and dP into dS. In padding lse is infinite and D 0, so that P is 0.
template <class T>
struct alignas(2 * sizeof(Scalar<T>)) Stats {
    Scalar<T> lse_log2;  ///< lse * log2(e)
    Scalar<T> d;
};

/// Rows that are `row_stride` elements apart, described as load_tile and store need them.
struct Rows {
    std::int64_t row_stride;
    int seq, head_size;
    bool vectorised;  ///< rows of every head start at multiples of 16 bytes and consist of whole vectors
};

template <class T>
struct GradientProblem {
    const T *qkv, *out, *dout;
    const Scalar<T>* lse;
    T* dqkv;
    Stats<T>* stats;  ///< [batch * heads, padded_seq]
    Rows in_qkv, in_out;
    int heads, padded_seq;
    int tiles;  ///< per head
    int sms;
    Scalar<T> scale, scale_log2;
};

/// What one kernel of keys makes. With wide elements or heads, registers may not hold the sums of both.
enum class KeyParts { dk_and_dv, dk, dv };

/// The rows that a block owns, and pointers to its head.
template <class T>
struct GradientWork {
    const T *q, *k, *v, *out, *dout;  ///< row 0 of the head
    T *dq, *dk, *dv;
    const Scalar<T>* lse;
    Stats<T>* stats;
    int first_row;
};

/// Assigns heavy tiles first: for queries the last ones, which have most keys; for keys the first ones.
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

/// The stats of a query once its D is known.
template <class T>
__device__ Stats<T> stats_of(const GradientProblem<T>& problem, const GradientWork<T>& work, int query, Scalar<T> d) {
    constexpr Scalar<T> log2_e = Scalar<T>(1.44269504088896340735992468100189214);
    return {query < problem.in_qkv.seq ? work.lse[query] * log2_e : Scalar<T>(__builtin_huge_val()), d};
}

/// Start to copy `rows` rows of q followed by those of dout, or of k followed by those of v.
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

/// The most shared memory that a kernel of the tile uses.
template <class Layout>
inline constexpr int gradient_smem_bytes = std::max(Layout::query_smem_bytes, Layout::key_smem_bytes);

/// Launches `of_queries`, then the kernels `of_keys`. Each takes a GradientProblem<T> and gets one block per tile and
/// head. `Layout` has the tile, the threads and the bytes of shared memory.
template <class T, class Layout, auto of_queries, auto... of_keys>
void launch_gradient(const AttentionGradientArguments& arguments, cudaStream_t stream) {
    // An A100's SM has 164 KiB of shared memory, of which every block reserves one.
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
