// Backward of causal attention in plain loops. A task owns 64 queries of a head and makes their dq, or 64 keys and
// makes their dk and dv. So no two tasks add to the same number, and results do not depend on the threads. The price:
// both kinds compute scores and dP, 7 products where 5 would do.
#include "cpu/native/attention_gradient.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Queries or keys per block. Two blocks, their scores and dP and two sums take 128 KiB in fp32 at 64 columns: in L2.
constexpr std::int64_t block = 64;
/// Rows and columns of a product whose sums stay in registers: they take 8 of AVX-512's 32, enough to hide an FMA's
/// latency. In fp32 a thread does 89 GFLOP/s with AVX-512, 36 with AVX2 (a virtual Xeon); with 8 rows 99 and 31.
constexpr std::int64_t rows_at_once = 4;
template <class C>
constexpr std::int64_t columns_at_once = 128 / static_cast<std::int64_t>(sizeof(C));

template <class C>
std::int64_t padded(std::int64_t head_size) {
    return (head_size + columns_at_once<C> - 1) / columns_at_once<C> * columns_at_once<C>;
}

/// c [64, columns] += a b, where a(i, l) is a[i * row + l * step] and b is [depth, columns]; columns in whole vectors.
template <class C>
void add_product(std::int64_t columns, std::int64_t depth, const C* a, std::int64_t row, std::int64_t step, const C* b,
                 C* c) {
    constexpr std::int64_t width = columns_at_once<C>;
    for (std::int64_t j = 0; j < columns; j += width)
        for (std::int64_t i = 0; i < block; i += rows_at_once) {
            C sums[rows_at_once][width];
            for (std::int64_t r = 0; r < rows_at_once; ++r)
#pragma omp simd
                for (std::int64_t w = 0; w < width; ++w) sums[r][w] = c[(i + r) * columns + j + w];
            for (std::int64_t l = 0; l < depth; ++l)
                for (std::int64_t r = 0; r < rows_at_once; ++r) {
                    const C factor = a[(i + r) * row + l * step];
#pragma omp simd
                    for (std::int64_t w = 0; w < width; ++w) sums[r][w] += factor * b[l * columns + j + w];
                }
            for (std::int64_t r = 0; r < rows_at_once; ++r)
#pragma omp simd
                for (std::int64_t w = 0; w < width; ++w) c[(i + r) * columns + j + w] = sums[r][w];
        }
}

/// Copies 64 rows of a head, widened and padded with zeros; rows that the sequence does not have are zero, too.
template <class T, class C>
void read_block(std::int64_t rows, std::int64_t head_size, const T* from, std::int64_t stride, C* to) {
    const std::int64_t columns = padded<C>(head_size);
    for (std::int64_t r = 0; r < block; ++r) {
        const std::int64_t count = r < rows ? head_size : 0;
#pragma omp simd
        for (std::int64_t c = 0; c < count; ++c) to[r * columns + c] = load(from[r * stride + c]);
        std::fill(to + r * columns + count, to + (r + 1) * columns, C(0));
    }
}

/// The same, transposed and without padding columns: [head_size, 64].
template <class T, class C>
void read_transposed(std::int64_t rows, std::int64_t head_size, const T* from, std::int64_t stride, C* to) {
    std::fill(to, to + head_size * block, C(0));
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < head_size; ++c) to[c * block + r] = load(from[r * stride + c]);
}

/// A thread's memory. For the block that a task owns: two transposed factors and two sums. For another block: the same
/// two factors. And [64 of the other block, 64 of the own] scores, which become P, and dP, which becomes dS.
template <class C>
struct Buffers {
    C *own[2], *sums[2], *other[2], *p, *ds;

    static std::int64_t elements(std::int64_t head_size) {
        return 2 * block * head_size + 4 * block * padded<C>(head_size) + 2 * block * block;
    }
    Buffers(C* memory, std::int64_t head_size) {
        const auto take = [&memory](std::int64_t count) { return std::exchange(memory, memory + count); };
        for (C*& factor : own) factor = take(block * head_size);
        for (C*& sum : sums) sum = take(block * padded<C>(head_size));
        for (C*& factor : other) factor = take(block * padded<C>(head_size));
        p = take(block * block);
        ds = take(block * block);
    }
};

template <class T, class C = Compute<T>>
class Task {
  public:
    Task(const Attention& op, std::int64_t head, const T* qkv, const T* dout, const C* lse, const C* d, C* memory)
        : op_(op),
          head_size_(op.shape.head_size),
          qkv_stride_(3 * op.shape.width()),
          q_(qkv + head / op.shape.heads * op.shape.seq * qkv_stride_ + head % op.shape.heads * head_size_),
          dout_(dout + head / op.shape.heads * op.shape.seq * op.shape.width() + head % op.shape.heads * head_size_),
          lse_(lse + head * op.shape.seq),
          d_(d + head * op.shape.seq),
          buffers_(memory, head_size_) {}

    void query_block(std::int64_t first, T* dq) const {
        own({q_, qkv_stride_}, {dout_, op_.shape.width()}, first);
        for (std::int64_t key = 0; key <= first; key += block) {
            other({q_ + op_.shape.width(), qkv_stride_}, {q_ + 2 * op_.shape.width(), qkv_stride_}, key);
            exponentials<true>(first, key);
            add_product(columns(), block, buffers_.ds, 1, block, buffers_.other[0], buffers_.sums[0]);
        }
        write(first, 0, static_cast<C>(op_.scale), dq);
    }

    void key_block(std::int64_t first, T* dk, T* dv) const {
        own({q_ + op_.shape.width(), qkv_stride_}, {q_ + 2 * op_.shape.width(), qkv_stride_}, first);
        for (std::int64_t query = first; query < op_.shape.seq; query += block) {
            other({q_, qkv_stride_}, {dout_, op_.shape.width()}, query);
            exponentials<false>(query, first);
            add_product(columns(), block, buffers_.ds, 1, block, buffers_.other[0], buffers_.sums[0]);
            add_product(columns(), block, buffers_.p, 1, block, buffers_.other[1], buffers_.sums[1]);
        }
        write(first, 0, static_cast<C>(op_.scale), dk);
        write(first, 1, C(1), dv);
    }

  private:
    struct Rows {
        const T* data;
        std::int64_t stride;
    };

    std::int64_t columns() const { return padded<C>(head_size_); }
    std::int64_t rows_from(std::int64_t first) const { return std::min(block, op_.shape.seq - first); }

    void own(Rows score_factor, Rows dp_factor, std::int64_t first) const {
        const Rows from[] = {score_factor, dp_factor};
        for (int i = 0; i < 2; ++i) {
            read_transposed(rows_from(first), head_size_, from[i].data + first * from[i].stride, from[i].stride,
                            buffers_.own[i]);
            std::fill(buffers_.sums[i], buffers_.sums[i] + block * columns(), C(0));
        }
    }

    /// Computes scores (not scaled) and dP of the other block's rows and the own ones.
    void other(Rows score_factor, Rows dp_factor, std::int64_t first) const {
        const Rows from[] = {score_factor, dp_factor};
        C* const products[] = {buffers_.p, buffers_.ds};
        for (int i = 0; i < 2; ++i) {
            read_block(rows_from(first), head_size_, from[i].data + first * from[i].stride, from[i].stride,
                       buffers_.other[i]);
            std::fill(products[i], products[i] + block * block, C(0));
            add_product(block, head_size_, buffers_.other[i], columns(), 1, buffers_.own[i], products[i]);
        }
    }

    /// Turns scores and dP into P and dS in place; 0 where the key is after the query, or there is no such query.
    template <bool own_are_queries>
    void exponentials(std::int64_t first_query, std::int64_t first_key) const {
        constexpr C infinity = std::numeric_limits<C>::infinity();
        C lse[block], d[block];
        for (std::int64_t i = 0; i < block; ++i) {
            const bool inside = first_query + i < op_.shape.seq;
            lse[i] = inside ? lse_[first_query + i] * log2_e<C> : infinity;
            d[i] = inside ? d_[first_query + i] : C(0);
        }
        const C scale = static_cast<C>(op_.scale) * log2_e<C>;
        for (std::int64_t r = 0; r < block; ++r) {
            C *p = buffers_.p + r * block, *ds = buffers_.ds + r * block;
            // Keys up to the query: a query's row has the first ones, a key's row the last ones.
            const std::int64_t distance = first_query - first_key;
            const std::int64_t begin = own_are_queries ? std::clamp<std::int64_t>(r - distance, 0, block) : 0;
            const std::int64_t end = own_are_queries ? block : std::clamp<std::int64_t>(r + distance + 1, 0, block);
#pragma omp simd
            for (std::int64_t i = 0; i < block; ++i) {
                const std::int64_t query = own_are_queries ? i : r;
                p[i] = exp2_vector(p[i] * scale - lse[query]);
                ds[i] = p[i] * (ds[i] - d[query]);
            }
            for (C* const row : {p, ds}) {
                std::fill(row, row + begin, C(0));
                std::fill(row + end, row + block, C(0));
            }
        }
    }

    void write(std::int64_t first, int sum, C scale, T* to) const {
        for (std::int64_t r = 0; r < rows_from(first); ++r) {
            const C* from = buffers_.sums[sum] + r * columns();
            T* row = to + (first + r) * qkv_stride_;
#pragma omp simd
            for (std::int64_t c = 0; c < head_size_; ++c) store(row[c], from[c] * scale);
        }
    }

    const Attention& op_;
    std::int64_t head_size_, qkv_stride_;
    const T *q_, *dout_;  ///< row 0 of the head
    const C *lse_, *d_;
    Buffers<C> buffers_;
};

/// D of every query.
template <class T, class C>
void sums_of_products(const AttentionShape& shape, const T* out, const T* dout, C* d) {
    const std::int64_t heads = shape.batch * shape.heads;
#pragma omp parallel for schedule(static)
    for (std::int64_t head = 0; head < heads; ++head)
        vectorised([=, &shape] {
            for (std::int64_t query = 0; query < shape.seq; ++query) {
                const std::int64_t at =
                    (head / shape.heads * shape.seq + query) * shape.width() + head % shape.heads * shape.head_size;
                const T *x = out + at, *y = dout + at;
                d[head * shape.seq + query] =
                    sum_over<C>(shape.head_size, [=](std::int64_t c) { return load(x[c]) * load(y[c]); });
            }
        });
}

}  // namespace

std::size_t attention_gradient_workspace(DataType type, const Attention& op) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const std::int64_t elements =
            op.shape.score_rows() + omp_get_max_threads() * Buffers<C>::elements(op.shape.head_size);
        bytes = static_cast<std::size_t>(elements) * sizeof(C);
    });
    return bytes;
}

void attention_gradient(DataType type, const Attention& op, In<"qkv"> qkv, In<"out"> out, In<"dout"> dout,
                        In<"lse"> lse, Out<"dqkv"> dqkv, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const AttentionShape& shape = op.shape;
        C* d = static_cast<C*>(workspace);
        C* memory = d + shape.score_rows();
        sums_of_products(shape, static_cast<const T*>(out), static_cast<const T*>(dout), d);
        const std::int64_t heads = shape.batch * shape.heads, blocks = (shape.seq + block - 1) / block;
#pragma omp parallel for schedule(dynamic)
        for (std::int64_t task = 0; task < 2 * heads * blocks; ++task) {
            // The most work comes first: the first keys and the last queries.
            const std::int64_t rank = task / (2 * heads), head = task / 2 % heads;
            const Task<T> of(op, head, static_cast<const T*>(qkv), static_cast<const T*>(dout),
                             static_cast<const C*>(lse), d,
                             memory + omp_get_thread_num() * Buffers<C>::elements(shape.head_size));
            T* dq = static_cast<T*>(dqkv) + head / shape.heads * shape.seq * 3 * shape.width() +
                    head % shape.heads * shape.head_size;
            vectorised([&] {
                if (task % 2 == 0)
                    of.key_block(rank * block, dq + shape.width(), dq + 2 * shape.width());
                else
                    of.query_block((blocks - 1 - rank) * block, dq);
            });
        }
    });
}

}  // namespace kbench::cpu
