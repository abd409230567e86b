// Attention over a cache, split by keys (Dao et al., Flash-Decoding, 2023): one new token has too few query rows for a
// GPU. A block takes some keys of one kv head and makes their part of the output of all query heads in its group, so
// that keys and values are read once. Parts are merged in order: by the blocks of a cluster, which read each other's
// shared memory, and by a second kernel where there are more parts than a cluster has blocks. Each key meets few
// queries, so products are plain multiply-adds on what 16-byte loads bring. What lies in the cache depends on no kernel
// of the step, so that its loads go out before the kernel waits for the one that makes the queries.
#include "kernels/attention/cached.h"

#include <cooperative_groups.h>

#include <algorithm>
#include <numbers>
#include <string>

#include "kbench/error.h"
#include "kernels/attention/softmax.cuh"
#include "kernels/multiprocessors.h"
#include "kernels/programmatic.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

using attention::infinity;
using attention::lanes_sum;
using attention::power_of_two;

constexpr int warp = 32, warps = 4, threads = warps * warp;
/// Blocks an SM should get, so that their loads hide each other's latency.
constexpr int blocks_per_sm = 4;

/// How a kernel is built: lanes that share a key, 16-byte vectors of it that each has, query rows that it serves at
/// once.
struct Build {
    int lanes, vectors, rows;
    /// Keys that a warp asks for before it waits for the first.
    constexpr int steps() const { return std::max(1, 4 / vectors); }
    constexpr int keys_of_step() const { return warps * warp / lanes; }
    constexpr int keys_at_once() const { return keys_of_step() * steps(); }
};

Build build_for(DataType type, const CachedAttention& op) {
    const auto size = static_cast<std::int64_t>(size_of(type));
    if (op.head_size > cached_attention_max_head_size)
        throw Unsupported("attention over a cache with head_size " + std::to_string(op.head_size) +
                          ": the kernels take at most " + std::to_string(cached_attention_max_head_size));
    const std::int64_t vectors = divide_up(op.head_size * size, 16), rows = op.queries * op.group();
    Build build{.lanes = vectors <= 8 && size == 2 ? 8 : vectors <= 16 ? 16 : 32, .vectors = 1, .rows = 1};
    while (build.lanes * build.vectors < vectors) build.vectors *= 2;
    if (rows > 1) build.rows = rows <= 4 || size == 8 ? 4 : 8;
    return build;
}

/// Blocks of a cluster, at most, and the turns of each up to which a cluster is worth more than smaller parts.
constexpr int most_of_cluster = 8, most_turns_in_cluster = 4;

/// How many parts the keys are split into, and how many keys each has.
struct Split {
    std::int64_t parts, keys;
};

Split split_for(const Build& build, const CachedAttention& op) {
    const std::int64_t visible = op.window > 0 ? std::min(op.keys(), op.window + op.queries - 1) : op.keys();
    const std::int64_t turns = divide_up(visible, build.keys_at_once());
    const std::int64_t heads = op.batch * op.kv_heads * divide_up(op.queries * op.group(), build.rows);
    const std::int64_t wanted = std::int64_t{blocks_per_sm} * multiprocessors_of(nullptr);
    std::int64_t each = std::clamp<std::int64_t>(turns * heads / wanted, 1, turns);
    if (turns <= most_of_cluster * most_turns_in_cluster) each = std::max(each, divide_up(turns, most_of_cluster));
    return {divide_up(turns, each), each * build.keys_at_once()};
}

template <typename T>
struct Problem {
    const T* qkv;
    T *keys, *values;
    const std::int32_t* positions;
    T* out;
    /// For each query row and part its head_size sums of p v, the largest score and the sum of p.
    Arithmetic<T>* parts;
    std::int64_t qkv_width;
    int heads, kv_heads, queries, capacity, head_size, window;
    int rows;  ///< each query of each head in a kv head's group
    int splits, span;
    bool is_clustered;  ///< a cluster's blocks have all parts of a kv head
    Arithmetic<T> scale_log2;

    __device__ int group() const { return heads / kv_heads; }
    __device__ int pitch() const { return head_size + 2; }
    /// Where row `row` of kv head `head` (of all sequences') goes.
    __device__ T* out_row(int head, int row) const {
        const std::int64_t token = std::int64_t{head / kv_heads} * queries + row / group();
        return out + (token * heads + head % kv_heads * group() + row % group()) * head_size;
    }
};

/// Elements from `column` on of a row of head_size; zeros behind its end. `whole`: rows consist of whole vectors.
template <bool whole, typename T, int N = vector_width<T>>
__device__ Vector<T, N> load_columns(const T* row, int column, const Problem<T>& problem) {
    if constexpr (whole) {
        return column < problem.head_size ? Vector<T, N>::load_once(row + column) : Vector<T, N>{};
    } else {
        Vector<T, N> vector;
#pragma unroll
        for (int i = 0; i < N; ++i) vector.elements[i] = column + i < problem.head_size ? row[column + i] : T(0.0f);
        return vector;
    }
}

template <bool whole, typename T, int N = vector_width<T>>
__device__ void store_columns(const Vector<T, N>& vector, T* row, int column, const Problem<T>& problem) {
    if constexpr (whole) {
        if (column < problem.head_size) vector.store(row + column);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (column + i < problem.head_size) row[column + i] = vector.elements[i];
    }
}

/// Where a block's keys and values lie: rows of the cache, and from `position` on those of the new tokens.
template <typename T>
struct KeyRows {
    T *keys, *values;
    const T *new_keys, *new_values;
    int position, end;
};

/// A lane's vectors of keys and values at `first`, of those that lie in the cache; zeros in place of others.
template <bool whole, typename T, int steps, int vectors, typename ColumnOf, int N = vector_width<T>>
__device__ void load_cached(const KeyRows<T>& rows, const Problem<T>& problem, int first, int step,
                            const ColumnOf& column_of, Vector<T, N> (&key)[steps][vectors],
                            Vector<T, N> (&value)[steps][vectors]) {
#pragma unroll
    for (int s = 0; s < steps; ++s) {
        const int at = first + s * step;
        const bool is_there = at < min(rows.position, rows.end);
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
            const int column = is_there ? column_of(v) : problem.head_size;
            key[s][v] = load_columns<whole>(rows.keys + std::int64_t{at} * problem.head_size, column, problem);
            value[s][v] = load_columns<whole>(rows.values + std::int64_t{at} * problem.head_size, column, problem);
        }
    }
}

/// The same of the new tokens, which the first row of blocks also puts into the cache.
template <bool whole, typename T, int steps, int vectors, typename ColumnOf, int N = vector_width<T>>
__device__ void load_new(const KeyRows<T>& rows, const Problem<T>& problem, int first, int step,
                         const ColumnOf& column_of, Vector<T, N> (&key)[steps][vectors],
                         Vector<T, N> (&value)[steps][vectors]) {
#pragma unroll
    for (int s = 0; s < steps; ++s) {
        const int at = first + s * step;
        if (at < rows.position || at >= rows.end) continue;
        const std::int64_t token = std::int64_t{at - rows.position} * problem.qkv_width;
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
            key[s][v] = load_columns<whole>(rows.new_keys + token, column_of(v), problem);
            value[s][v] = load_columns<whole>(rows.new_values + token, column_of(v), problem);
            if (blockIdx.y > 0) continue;
            store_columns<whole>(key[s][v], rows.keys + std::int64_t{at} * problem.head_size, column_of(v), problem);
            store_columns<whole>(value[s][v], rows.values + std::int64_t{at} * problem.head_size, column_of(v),
                                 problem);
        }
    }
}

/// What scores and maxima are relative to; a maximum of nothing is -infinity, which must not be subtracted from itself.
template <typename A>
__device__ A finite(A maximum) {
    return maximum == -infinity<A> ? A(0) : maximum;
}

/// A lane's columns of the query at `from`.
template <bool whole, typename T, int columns, typename ColumnOf>
__device__ void load_query(Arithmetic<T> (&q)[columns], const T* from, const Problem<T>& problem,
                           const ColumnOf& column_of) {
    constexpr int N = vector_width<T>;
#pragma unroll
    for (int v = 0; v < columns / N; ++v) {
        Arithmetic<T> wide[N];
        widen(load_columns<whole>(from, column_of(v), problem), wide);
#pragma unroll
        for (int i = 0; i < N; ++i) q[v * N + i] = wide[i];
    }
}

/// A softmax over some keys, of one column: the largest score, and relative to it the sums of p v and of p.
template <typename A>
struct PartOfKeys {
    A maximum, out, sum;
};

/// The softmax over all keys of `count` parts; `part(i)` is a PartOfKeys. In their order. Its loops, and those over
/// what is written, stay short: their code runs once a launch, and is waited for as no cache has it.
template <typename A>
__device__ PartOfKeys<A> merge_in_order(int count, const auto& part) {
    PartOfKeys<A> merged{-infinity<A>, 0, 0};
#pragma unroll 1
    for (int i = 0; i < count; ++i) merged.maximum = max(merged.maximum, part(i).maximum);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const PartOfKeys<A> one = part(i);
        const A weight = power_of_two(one.maximum - finite(merged.maximum));
        merged.out += weight * one.out;
        merged.sum += weight * one.sum;
    }
    return merged;
}

/// What a block's warps have of its rows before they are merged.
template <typename A, int rows, int width>
struct OfWarps {
    A out[warps][rows][width];
    A maximum[warps][rows], sum[warps][rows];
};

/// The lanes that share a key have all of its sums: merges those of a warp's other keys, and leaves them in `merged`.
/// `column_of` says where a lane's vector begins.
template <int lanes, typename A, int rows, int columns, int width, typename ColumnOf>
__device__ void merge_keys_of_warp(A (&out)[rows][columns], A (&maximum)[rows], A (&sum)[rows],
                                   OfWarps<A, rows, width>& merged, const ColumnOf& column_of) {
    const int own_warp = static_cast<int>(threadIdx.x) / warp;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const A own = maximum[r];
#pragma unroll
        for (int mask = lanes; mask < warp; mask *= 2)
            maximum[r] = max(maximum[r], __shfl_xor_sync(0xffffffffu, maximum[r], mask));
        const A factor = power_of_two(own - finite(maximum[r]));
        sum[r] *= factor;
#pragma unroll
        for (int mask = lanes; mask < warp; mask *= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], mask);
#pragma unroll
        for (int c = 0; c < columns; ++c) {
            out[r][c] *= factor;
#pragma unroll
            for (int mask = lanes; mask < warp; mask *= 2) out[r][c] += __shfl_xor_sync(0xffffffffu, out[r][c], mask);
        }
        if (threadIdx.x % warp < lanes) {
#pragma unroll
            for (int c = 0; c < columns; ++c) merged.out[own_warp][r][column_of(c)] = out[r][c];
            merged.maximum[own_warp][r] = maximum[r];
            merged.sum[own_warp][r] = sum[r];
        }
    }
}

/// Row `r` and `column` of all warps of a block.
template <typename A, int rows, int width>
__device__ PartOfKeys<A> part_of_block(const OfWarps<A, rows, width>& merged, int r, int column) {
    return merge_in_order<A>(warps, [&](int w) {
        return PartOfKeys<A>{merged.maximum[w][r], merged.out[w][r][column], merged.sum[w][r]};
    });
}

/// Merges the warps' rows, from `first_row` of kv head `head` on: into the result where keys are not split, else into
/// part `split`.
template <typename T, int rows, int width>
__device__ void write_rows(const Problem<T>& problem, const OfWarps<Arithmetic<T>, rows, width>& merged, int head,
                           int split, int first_row) {
    using A = Arithmetic<T>;
#pragma unroll 1
    for (int index = static_cast<int>(threadIdx.x); index < rows * problem.head_size; index += threads) {
        const int r = index / problem.head_size, column = index % problem.head_size, row = first_row + r;
        if (row >= problem.rows) return;
        const PartOfKeys<A> all = part_of_block(merged, r, column);
        if (problem.splits == 1) {
            problem.out_row(head, row)[column] = static_cast<T>(all.out / all.sum);
            continue;
        }
        A* const part =
            problem.parts + ((std::int64_t{head} * problem.rows + row) * problem.splits + split) * problem.pitch();
        part[column] = all.out;
        if (column > 0) continue;
        part[problem.head_size] = all.maximum;
        part[problem.head_size + 1] = all.sum;
    }
}

/// Merges the rows of a cluster's blocks, each of which has a part of the keys. Every block makes some columns.
template <typename T, int rows, int width>
__device__ void write_rows_of_cluster(const Problem<T>& problem, OfWarps<Arithmetic<T>, rows, width>& merged, int head,
                                      int first_row) {
#if __CUDA_ARCH__ >= 900
    using A = Arithmetic<T>;
    const auto cluster = cooperative_groups::this_cluster();
    // A block's part takes the place of its first warp's, once all have been read.
    constexpr int own = (rows * width + threads - 1) / threads;
    PartOfKeys<A> parts[own];
#pragma unroll
    for (int i = 0; i < own; ++i) {
        const int index = i * threads + static_cast<int>(threadIdx.x);
        if (index < rows * width) parts[i] = part_of_block(merged, index / width, index % width);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < own; ++i) {
        const int index = i * threads + static_cast<int>(threadIdx.x);
        if (index >= rows * width) continue;
        merged.out[0][index / width][index % width] = parts[i].out;
        if (index % width > 0) continue;
        merged.maximum[0][index / width] = parts[i].maximum;
        merged.sum[0][index / width] = parts[i].sum;
    }
    cluster.sync();
#pragma unroll 1
    for (int index = static_cast<int>(cluster.block_rank()) * threads + static_cast<int>(threadIdx.x);
         index < rows * problem.head_size; index += problem.splits * threads) {
        const int r = index / problem.head_size, column = index % problem.head_size, row = first_row + r;
        if (row >= problem.rows) break;
        const PartOfKeys<A> all = merge_in_order<A>(problem.splits, [&](int block) {
            const auto& part = *cluster.map_shared_rank(&merged, static_cast<unsigned>(block));
            return PartOfKeys<A>{part.maximum[0][r], part.out[0][r][column], part.sum[0][r]};
        });
        problem.out_row(head, row)[column] = static_cast<T>(all.out / all.sum);
    }
    cluster.sync();  // no block ends while another reads its shared memory
#endif
}

template <typename T, int lanes, int vectors, int rows, bool whole>
__global__ __launch_bounds__(threads) void attend_keys(Problem<T> problem) {
    using A = Arithmetic<T>;
    constexpr Build build{lanes, vectors, rows};
    constexpr int N = vector_width<T>, columns = vectors * N;
    constexpr int steps = build.steps(), keys_of_step = build.keys_of_step(), keys_at_once = build.keys_at_once();
    __shared__ OfWarps<A, rows, lanes * columns> merged;
    let_next_launch();

    const int head = static_cast<int>(blockIdx.x) / problem.splits,
              split = static_cast<int>(blockIdx.x) % problem.splits;
    const int first_row = static_cast<int>(blockIdx.y) * rows;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const int own_key = static_cast<int>(threadIdx.x) / lanes;  // among those of a step
    const int sequence = head / problem.kv_heads, kv_head = head % problem.kv_heads;
    const std::int64_t token = std::int64_t{sequence} * problem.queries;
    const T* const q_rows = problem.qkv + token * problem.qkv_width;
    const T* const new_keys = q_rows + std::int64_t{problem.heads + kv_head} * problem.head_size;
    const T* const new_values = new_keys + std::int64_t{problem.kv_heads} * problem.head_size;
    const std::int64_t in_cache = std::int64_t{head} * problem.capacity * problem.head_size;
    T* const keys = problem.keys + in_cache;
    T* const values = problem.values + in_cache;
    const int position = problem.positions[sequence];
    const int first_key = problem.window > 0 ? max(0, position - problem.window + 1) : 0;
    const int begin = first_key + split * problem.span, end = min(begin + problem.span, position + problem.queries);
    const auto column_of = [&](int vector) { return (lane + vector * lanes) * N; };

    const KeyRows<T> cache{keys, values, new_keys, new_values, position, end};
    Vector<T, N> key[steps][vectors], value[steps][vectors];
    load_cached<whole>(cache, problem, begin + own_key, keys_of_step, column_of, key, value);
    wait_for_previous();

    A q[rows][columns];
    int last_key[rows];  // that the row sees
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const int row = min(first_row + r, problem.rows - 1), query = row / problem.group();
        last_key[r] = position + query;
        load_query<whole>(q[r],
                          q_rows + query * problem.qkv_width +
                              (kv_head * problem.group() + row % problem.group()) * problem.head_size,
                          problem, column_of);
    }

    A out[rows][columns] = {}, maximum[rows], sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows; ++r) maximum[r] = -infinity<A>;
    for (int first = begin; first < end; first += keys_at_once) {
        if (first > begin) load_cached<whole>(cache, problem, first + own_key, keys_of_step, column_of, key, value);
        load_new<whole>(cache, problem, first + own_key, keys_of_step, column_of, key, value);
        A score[steps][rows];
#pragma unroll
        for (int s = 0; s < steps; ++s) {
            const int at = first + s * keys_of_step + own_key;
            A dot[rows] = {};
#pragma unroll
            for (int v = 0; v < vectors; ++v) {
                A wide[N];
                widen(key[s][v], wide);
#pragma unroll
                for (int r = 0; r < rows; ++r)
#pragma unroll
                    for (int i = 0; i < N; ++i) dot[r] = fma(q[r][v * N + i], wide[i], dot[r]);
            }
#pragma unroll
            for (int r = 0; r < rows; ++r) {
                const bool is_seen =
                    at < end && at <= last_key[r] && (problem.window == 0 || at > last_key[r] - problem.window);
                const A product = lanes_sum<lanes>(dot[r]);
                score[s][r] = is_seen ? product * problem.scale_log2 : -infinity<A>;
            }
        }
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const A before = maximum[r];
#pragma unroll
            for (int s = 0; s < steps; ++s) maximum[r] = max(maximum[r], score[s][r]);
            const A factor = power_of_two(before - finite(maximum[r]));
            sum[r] *= factor;
#pragma unroll
            for (int c = 0; c < columns; ++c) out[r][c] *= factor;
#pragma unroll
            for (int s = 0; s < steps; ++s) {
                score[s][r] = power_of_two(score[s][r] - finite(maximum[r]));
                sum[r] += score[s][r];
            }
        }
#pragma unroll
        for (int s = 0; s < steps; ++s)
#pragma unroll
            for (int v = 0; v < vectors; ++v) {
                A wide[N];
                widen(value[s][v], wide);
#pragma unroll
                for (int r = 0; r < rows; ++r)
#pragma unroll
                    for (int i = 0; i < N; ++i) out[r][v * N + i] = fma(score[s][r], wide[i], out[r][v * N + i]);
            }
    }

    merge_keys_of_warp<lanes>(out, maximum, sum, merged, [&](int c) { return column_of(c / N) + c % N; });
    __syncthreads();
    if (problem.is_clustered)
        write_rows_of_cluster(problem, merged, head, first_row);
    else
        write_rows(problem, merged, head, split, first_row);
}

/// A block for each query row.
template <typename T>
__global__ __launch_bounds__(threads) void merge_parts(Problem<T> problem) {
    using A = Arithmetic<T>;
    let_next_launch();
    wait_for_previous();
    const A* const parts = problem.parts + std::int64_t{blockIdx.x} * problem.splits * problem.pitch();
    T* const to =
        problem.out_row(static_cast<int>(blockIdx.x) / problem.rows, static_cast<int>(blockIdx.x) % problem.rows);
    for (int column = static_cast<int>(threadIdx.x); column < problem.head_size; column += threads) {
        const PartOfKeys<A> all = merge_in_order<A>(problem.splits, [&](int s) {
            const A* const part = parts + s * problem.pitch();
            return PartOfKeys<A>{part[problem.head_size], part[column], part[problem.head_size + 1]};
        });
        to[column] = static_cast<T>(all.out / all.sum);
    }
}

template <typename T, int lanes, int vectors, int rows, bool whole>
void launch(const Problem<T>& problem, std::int64_t kv_heads, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(kv_heads * problem.splits),
                    static_cast<unsigned>(divide_up(problem.rows, rows)));
    launch_behind(attend_keys<T, lanes, vectors, rows, whole>, grid, dim3(threads),
                  {.cluster = problem.is_clustered ? problem.splits : 1}, stream, problem);
    if (problem.splits > 1 && !problem.is_clustered)
        launch_behind(merge_parts<T>, dim3(static_cast<unsigned>(kv_heads * problem.rows)), dim3(threads), stream,
                      problem);
}

/// Launches the kernel that is built like `build`.
template <bool whole, typename T, int lanes, int vectors>
void launch_rows(const Build& build, const Problem<T>& problem, std::int64_t kv_heads, cudaStream_t stream) {
    if (build.rows == 1) return launch<T, lanes, vectors, 1, whole>(problem, kv_heads, stream);
    if constexpr (sizeof(T) < 8)
        if (build.rows == 8) return launch<T, lanes, vectors, 8, whole>(problem, kv_heads, stream);
    launch<T, lanes, vectors, 4, whole>(problem, kv_heads, stream);
}

template <bool whole, typename T>
void launch_like(const Build& build, const Problem<T>& problem, std::int64_t kv_heads, cudaStream_t stream) {
    if constexpr (sizeof(T) == 2)
        if (build.lanes == 8) return launch_rows<whole, T, 8, 1>(build, problem, kv_heads, stream);
    if (build.lanes == 16) return launch_rows<whole, T, 16, 1>(build, problem, kv_heads, stream);
    if constexpr (sizeof(T) == 8)
        if (build.vectors == 4) return launch_rows<whole, T, 32, 4>(build, problem, kv_heads, stream);
    if constexpr (sizeof(T) > 2)
        if (build.vectors == 2) return launch_rows<whole, T, 32, 2>(build, problem, kv_heads, stream);
    launch_rows<whole, T, 32, 1>(build, problem, kv_heads, stream);
}

}  // namespace

std::size_t cached_attention_workspace(DataType type, const CachedAttention& op) {
    const Split split = split_for(build_for(type, op), op);
    const std::int64_t sums = op.batch * op.heads * op.queries * split.parts * (op.head_size + 2);
    return split.parts == 1 ? 0 : static_cast<std::size_t>(sums) * std::max<std::size_t>(4, size_of(type));
}

void cached_attention(DataType type, const CachedAttention& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                      Out<"value_cache"> value_cache, In<"positions", std::int32_t> positions, Out<"out"> out,
                      void* workspace, cudaStream_t stream) {
    const Build build = build_for(type, op);
    const Split split = split_for(build, op);
    dispatch(type, [&]<typename T>() {
        Problem<T> problem{};
        problem.qkv = qkv;
        problem.keys = key_cache;
        problem.values = value_cache;
        problem.positions = positions;
        problem.out = out;
        problem.parts = static_cast<Arithmetic<T>*>(workspace);
        problem.qkv_width = op.qkv_width();
        problem.heads = static_cast<int>(op.heads);
        problem.kv_heads = static_cast<int>(op.kv_heads);
        problem.queries = static_cast<int>(op.queries);
        problem.capacity = static_cast<int>(op.keys());
        problem.head_size = static_cast<int>(op.head_size);
        problem.window = static_cast<int>(op.window);
        problem.rows = static_cast<int>(op.queries * op.group());
        problem.splits = static_cast<int>(split.parts);
        problem.span = static_cast<int>(split.keys);
        // A part of the device may have no room for a cluster.
        problem.is_clustered = split.parts > 1 && split.parts <= most_of_cluster && can_overlap_launches() &&
                               multiprocessors_of(stream) == multiprocessors_of(nullptr);
        problem.scale_log2 = static_cast<Arithmetic<T>>(op.scale * std::numbers::log2e);
        dispatch_vector<vector_width<T>>(op.head_size, {qkv, key_cache, value_cache}, [&]<int N>() {
            constexpr bool whole = N > 1;
            launch_like<whole>(build, problem, op.batch * op.kv_heads, stream);
        });
    });
}

}  // namespace kbench::cuda
