// Token and position embedding, which adds two gathered rows; and its backward, which adds up rows of the same token.
// Bound by memory: each row of an output is written once. Backward uses no atomics on sums, whose order would differ
// from run to run: rows of the same token share its work, and add up its rows in order.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/embedding.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

/// `positions` of each sequence's first row; null: 0.
template <typename T, int N>
__global__ void embedding_kernel(const std::int32_t* __restrict__ tokens, const std::int32_t* __restrict__ positions,
                                 const T* __restrict__ wte, const T* __restrict__ wpe, T* __restrict__ out,
                                 std::int64_t seq, std::int64_t width) {
    const std::int64_t row = blockIdx.x, first = positions == nullptr ? 0 : positions[row / seq];
    const T* token_row = wte + std::int64_t{tokens[row]} * width;
    const T* position_row = wpe + (first + row % seq) * width;
    for (std::int64_t column = std::int64_t{threadIdx.x} * N; column < width; column += std::int64_t{blockDim.x} * N) {
        auto sum = Vector<T, N>::load(token_row + column);
        const auto position = Vector<T, N>::load(position_row + column);
#pragma unroll
        for (int i = 0; i < N; ++i)
            sum.elements[i] = static_cast<T>(static_cast<Arithmetic<T>>(sum.elements[i]) +
                                             static_cast<Arithmetic<T>>(position.elements[i]));
        sum.store(out + row * width + column);
    }
}

template <typename T, int N>
__global__ void token_embedding_kernel(const std::int32_t* __restrict__ tokens, const T* __restrict__ table,
                                       T* __restrict__ out, std::int64_t width) {
    const T* from = table + std::int64_t{tokens[blockIdx.x]} * width;
    T* to = out + std::int64_t{blockIdx.x} * width;
    for (std::int64_t column = std::int64_t{threadIdx.x} * N; column < width; column += std::int64_t{blockDim.x} * N)
        Vector<T, N>::load(from + column).store(to + column);
}

constexpr int gradient_threads = 256;
/// Vectors of a row that justify one more block for a frequent token: a warp's.
constexpr int least_share = 32;
/// Tokens that a thread examines between two barriers.
constexpr int tokens_of_thread = 8;
/// Rows that a block clears if their tokens are absent.
constexpr int tokens_cleared = 8;
constexpr int tokens_at_once = gradient_threads * tokens_of_thread;

__global__ void count_tokens_kernel(const std::int32_t* __restrict__ tokens, std::int64_t rows, int* counts) {
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row < rows) atomicAdd(counts + tokens[row], 1);  // integers give the same in any order
}

/// How many of rows [0, row) have `token`; the search may stop at `most`. All threads of the block must call it.
__device__ int rows_before(const std::int32_t* __restrict__ tokens, std::int64_t row, std::int32_t token, int most,
                           int* found) {
    if (threadIdx.x == 0) *found = 0;
    for (std::int64_t first = 0; first < row; first += tokens_at_once) {
        int mine = 0;
#pragma unroll
        for (int i = 0; i < tokens_of_thread; ++i) {
            const std::int64_t other = first + i * gradient_threads + threadIdx.x;
            if (other < row) mine += tokens[other] == token;
        }
        __syncthreads();  // no one still reads or resets the count before
        if (mine > 0) atomicAdd(found, mine);
        __syncthreads();
        if (*found >= most) break;
    }
    __syncthreads();
    return *found;
}

/// Adds rows of `token` to this thread's sum, in order: those occurrences whose number is `group` modulo `groups`. It
/// calls `visit(row)` for each. All threads of the block must call it.
template <typename Visit>
__device__ void for_rows_of(const std::int32_t* __restrict__ tokens, std::int64_t rows, std::int32_t token, int count,
                            int group, int groups, Visit visit) {
    __shared__ std::int32_t list[tokens_at_once];  // rows minus `first`, ascending
    __shared__ int of_warp[gradient_threads / 32];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    int before = 0;  // occurrences before `first`
    for (std::int64_t first = 0; first < rows && before < count; first += tokens_at_once) {
        // A thread examines neighbouring tokens, so that the list is written in order.
        int mine = 0;
        unsigned matches = 0;
#pragma unroll
        for (int i = 0; i < tokens_of_thread; ++i) {
            const std::int64_t row = first + thread * tokens_of_thread + i;
            if (row < rows && tokens[row] == token) {
                matches |= 1u << i;
                ++mine;
            }
        }
        int up_to = mine;  // in the warp, up to this lane
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, up_to, distance);
            if (lane >= distance) up_to += other;
        }
        __syncthreads();  // no one still reads the lists before
        if (lane == 31) of_warp[warp] = up_to;
        __syncthreads();
        int place = up_to - mine, found = 0;
        for (int w = 0; w < gradient_threads / 32; ++w) {
            if (w < warp) place += of_warp[w];
            found += of_warp[w];
        }
        for (int i = 0; i < tokens_of_thread; ++i)
            if (matches >> i & 1u) list[place++] = thread * tokens_of_thread + i;
        __syncthreads();
        // Starts at the first occurrence, counted over the whole token, that belongs to this group.
#pragma unroll 4
        for (int i = (group - before % groups + groups) % groups; i < found; i += groups) visit(first + list[i]);
        before += found;
    }
}

/// Block `r` < rows works for the token of row r. If the token occurs once, it does all; otherwise the blocks of its
/// first occurrences share the columns, and later ones do nothing. Blocks from `rows` on clear tokens_cleared rows each
/// of absent tokens, unless sums are added to existing gradients.
template <typename T, int N>
__global__ void __launch_bounds__(gradient_threads)
    token_gradient_kernel(const std::int32_t* __restrict__ tokens, const int* __restrict__ counts,
                          const T* __restrict__ dout, T* __restrict__ dwte, std::int64_t rows, std::int64_t vocab,
                          int vectors, bool accumulates) {
    using A = Arithmetic<T>;
    __shared__ A partial[gradient_threads][N];
    __shared__ int found;
    const std::int64_t width = std::int64_t{vectors} * N;
    const int thread = static_cast<int>(threadIdx.x);
    if (std::int64_t{blockIdx.x} >= rows) {
        const std::int64_t first = (std::int64_t{blockIdx.x} - rows) * tokens_cleared;
        Vector<T, N> zeros;
#pragma unroll
        for (int j = 0; j < N; ++j) zeros.elements[j] = static_cast<T>(0.0f);
        for (std::int64_t token = first; token < min(vocab, first + tokens_cleared); ++token) {
            if (counts[token] > 0) continue;
            for (int v = thread; v < vectors; v += gradient_threads)
                zeros.store(dwte + token * width + std::int64_t{v} * N);
        }
        return;
    }
    const std::int64_t row = blockIdx.x;
    const std::int32_t token = tokens[row];
    const int count = counts[token], blocks = min(count, (vectors + least_share - 1) / least_share);
    const int block = count == 1 ? 0 : rows_before(tokens, row, token, blocks, &found);
    if (block >= blocks) return;

    const int share = (vectors + blocks - 1) / blocks, begin = block * share, end = min(vectors, begin + share);
    // Where a share has few columns, groups of threads take the occurrences in turn.
    int lanes = 1;
    while (lanes < share && lanes < gradient_threads) lanes *= 2;
    const int groups = count == 1 ? 1 : gradient_threads / lanes, group = thread / lanes, lane = thread % lanes;
    for (int strip = begin; strip < end; strip += lanes) {
        const int v = strip + lane;
        const bool works = v < end && group < groups;
        const std::int64_t column = std::int64_t{v} * N;
        A sum[N] = {};
        const auto add = [&](std::int64_t from) {
            if (!works) return;
            const auto vector = Vector<T, N>::load(dout + from * width + column);
#pragma unroll
            for (int j = 0; j < N; ++j) sum[j] += static_cast<A>(vector.elements[j]);
        };
        if (count == 1)
            add(row);
        else
            for_rows_of(tokens, rows, token, count, group, groups, add);
        if (groups > 1) {
            __syncthreads();  // the last strip's sums have been read
#pragma unroll
            for (int j = 0; j < N; ++j) partial[thread][j] = sum[j];
            __syncthreads();
            for (int g = 1; g < groups && group == 0; ++g)
#pragma unroll
                for (int j = 0; j < N; ++j) sum[j] += partial[g * lanes + lane][j];
        }
        if (!works || group > 0) continue;
        T* const to = dwte + std::int64_t{token} * width + column;
        Vector<T, N> out;
        if (accumulates) {
            out = Vector<T, N>::load(to);
#pragma unroll
            for (int j = 0; j < N; ++j) sum[j] += static_cast<A>(out.elements[j]);
        }
#pragma unroll
        for (int j = 0; j < N; ++j) out.elements[j] = static_cast<T>(sum[j]);
        out.store(to);
    }
}

/// One block per position: dwpe[position, :] = sum over the sequences, plus its old value if `accumulates`; then only
/// positions that a sequence has get a block.
template <typename T, int N>
__global__ void position_gradient_kernel(const T* __restrict__ dout, T* __restrict__ dwpe, std::int64_t rows,
                                         std::int64_t seq, std::int64_t width, bool accumulates) {
    using A = Arithmetic<T>;
    const std::int64_t position = blockIdx.x;
    for (std::int64_t column = std::int64_t{threadIdx.x} * N; column < width; column += std::int64_t{blockDim.x} * N) {
        A sum[N] = {};
        for (std::int64_t row = position; position < seq && row < rows; row += seq) {
            const auto vector = Vector<T, N>::load(dout + row * width + column);
#pragma unroll
            for (int j = 0; j < N; ++j) sum[j] += static_cast<A>(vector.elements[j]);
        }
        Vector<T, N> out;
        if (accumulates) {
            out = Vector<T, N>::load(dwpe + position * width + column);
#pragma unroll
            for (int j = 0; j < N; ++j) sum[j] += static_cast<A>(out.elements[j]);
        }
#pragma unroll
        for (int j = 0; j < N; ++j) out.elements[j] = static_cast<T>(sum[j]);
        out.store(dwpe + position * width + column);
    }
}

/// Op: Embedding or EmbeddingAt.
template <typename Op>
void add_embeddings(DataType type, const Op& op, const std::int32_t* tokens, const std::int32_t* positions,
                    const void* wte, const void* wpe, void* out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {wte, wpe, out}, [&]<int N>() {
            const auto threads = std::min<std::int64_t>(256, divide_up(divide_up(op.width, N), 32) * 32);
            embedding_kernel<T, N><<<static_cast<unsigned>(op.rows), static_cast<unsigned>(threads), 0, stream>>>(
                tokens, positions, static_cast<const T*>(wte), static_cast<const T*>(wpe), static_cast<T*>(out), op.seq,
                op.width);
        });
    });
    KBENCH_CUDA_LAUNCHED("embedding_kernel");
}

}  // namespace

std::size_t embedding_gradient_workspace(DataType, const Embedding& op) {
    return static_cast<std::size_t>(op.vocab) * sizeof(int);
}

void embedding_gradient(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"dout"> dout,
                        Out<"dwte"> dwte, Out<"dwpe"> dwpe, void* workspace, cudaStream_t stream) {
    auto* const counts = static_cast<int*>(workspace);
    KBENCH_CUDA(cudaMemsetAsync(counts, 0, embedding_gradient_workspace(type, op), stream));
    count_tokens_kernel<<<static_cast<unsigned>(divide_up(op.rows, 256)), 256, 0, stream>>>(tokens, op.rows, counts);
    KBENCH_CUDA_LAUNCHED("count_tokens_kernel");
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {dout, dwte, dwpe}, [&]<int N>() {
            const std::int64_t vectors = op.width / N,
                               clearing = op.accumulates ? 0 : divide_up(op.vocab, tokens_cleared);
            token_gradient_kernel<T, N><<<static_cast<unsigned>(op.rows + clearing), gradient_threads, 0, stream>>>(
                tokens, counts, dout, dwte, op.rows, op.vocab, static_cast<int>(vectors), op.accumulates);
            KBENCH_CUDA_LAUNCHED("token_gradient_kernel");
            const auto threads = std::min<std::int64_t>(256, divide_up(vectors, 32) * 32);
            const std::int64_t blocks = op.accumulates_positions ? std::min(op.seq, op.positions) : op.positions;
            position_gradient_kernel<T, N>
                <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(
                    dout, dwpe, op.rows, op.seq, op.width, op.accumulates_positions);
        });
    });
    KBENCH_CUDA_LAUNCHED("position_gradient_kernel");
}

void embedding_forward(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"wte"> wte,
                       In<"wpe"> wpe, Out<"out"> out, cudaStream_t stream) {
    add_embeddings(type, op, tokens, nullptr, wte, wpe, out, stream);
}

void embedding_at(DataType type, const EmbeddingAt& op, In<"tokens", std::int32_t> tokens,
                  In<"positions", std::int32_t> positions, In<"wte"> wte, In<"wpe"> wpe, Out<"out"> out,
                  cudaStream_t stream) {
    add_embeddings(type, op, tokens, positions, wte, wpe, out, stream);
}

void token_embedding(DataType type, const TokenEmbedding& op, In<"tokens", std::int32_t> tokens, In<"table"> table,
                     Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {table.data(), out.data()}, [&]<int N>() {
            const auto threads = std::min<std::int64_t>(256, divide_up(divide_up(op.width, N), 32) * 32);
            token_embedding_kernel<T, N><<<static_cast<unsigned>(op.rows), static_cast<unsigned>(threads), 0, stream>>>(
                tokens, table, out, op.width);
        });
    });
    KBENCH_CUDA_LAUNCHED("token_embedding_kernel");
}

}  // namespace kbench::cuda
