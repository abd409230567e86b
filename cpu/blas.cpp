// fp64 (and fp32) through CBLAS. Large products use all threads inside OpenBLAS. Attention's small products run one per
// thread in our own parallel regions, where OpenBLAS built with OpenMP does not start threads of its own.
#include "cpu/blas.h"

#include <cblas.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cpu/im2col.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Query rows per block of attention: enough for an efficient product, few enough that little above the diagonal is
/// computed.
constexpr std::int64_t rows_per_block = 64;

blasint to_blas(std::int64_t size) {
    if (size > std::numeric_limits<blasint>::max())
        throw Unsupported(fmt::format("a matrix dimension of {} is beyond this BLAS's limit of {}", size,
                                      std::numeric_limits<blasint>::max()));
    return static_cast<blasint>(size);
}

/// c = a · b + beta c, row-major. a is [m, k], or [k, m] when transposed; b is [k, n], or [n, k]; ld is the distance
/// between rows in elements.
template <class T>
void product(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
             std::int64_t lda, const T* b, std::int64_t ldb, T* c, std::int64_t ldc, T beta = 0) {
    const auto a_as = a_transposed ? CblasTrans : CblasNoTrans, b_as = b_transposed ? CblasTrans : CblasNoTrans;
    if constexpr (std::is_same_v<T, double>)
        cblas_dgemm(CblasRowMajor, a_as, b_as, to_blas(m), to_blas(n), to_blas(k), 1.0, a, to_blas(lda), b,
                    to_blas(ldb), beta, c, to_blas(ldc));
    else
        cblas_sgemm(CblasRowMajor, a_as, b_as, to_blas(m), to_blas(n), to_blas(k), 1.0f, a, to_blas(lda), b,
                    to_blas(ldb), beta, c, to_blas(ldc));
}

/// Positions of a convolution that are multiplied at once: enough for an efficient product.
constexpr std::int64_t positions_at_once = 192;

/// Calls `function` with a double or a float, for the type.
template <class Function>
void with_blas_element(DataType type, const Function& function) {
    switch (type) {
        case DataType::fp64: return function(double{});
        case DataType::fp32: return function(float{});
        default: throw Unsupported(fmt::format("BLAS computes in fp64 and fp32, not in {}", name(type)));
    }
}

/// Works in place: row r of `scores` sees the first `first_row + r + 1` keys and becomes their probabilities, 0
/// elsewhere. Stores the rows' lse unless it is null.
template <class T>
void causal_softmax(std::int64_t first_row, std::int64_t rows, std::int64_t keys, T scale, T* scores, T* lse) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t seen = first_row + r + 1;
        T* s = scores + r * keys;
        T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
        for (std::int64_t j = 0; j < seen; ++j) largest = larger(s[j] * scale, largest);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < seen; ++j) {
            s[j] = exp2_vector((s[j] * scale - largest) * log2_e<T>);
            sum += s[j];
        }
        if (lse != nullptr) lse[r] = largest + std::log(sum);
        const T inverse = 1 / sum;
#pragma omp simd
        for (std::int64_t j = 0; j < seen; ++j) s[j] *= inverse;
        std::fill(s + seen, s + keys, T(0));
    }
}

std::int64_t block_elements(const AttentionShape& shape) { return std::min(rows_per_block, shape.seq) * shape.seq; }

/// Where a head's part of qkv, and of the attention's output, begins.
std::int64_t qkv_offset(const AttentionShape& shape, std::int64_t head, int part) {
    return (head / shape.heads * shape.seq * 3 + part) * shape.heads * shape.head_size +
           head % shape.heads * shape.head_size;
}
std::int64_t out_offset(const AttentionShape& shape, std::int64_t head) {
    return (head / shape.heads * shape.seq * shape.heads + head % shape.heads) * shape.head_size;
}

/// Calls f(head, first row, rows) for each block of query rows, in parallel. The last rows of all heads come first:
/// in causal attention they are the most work.
template <class Function>
void for_each_block(const AttentionShape& shape, const Function& f) {
    const std::int64_t heads = shape.batch * shape.heads;
    const std::int64_t blocks = (shape.seq + rows_per_block - 1) / rows_per_block;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t task = 0; task < heads * blocks; ++task) {
        const std::int64_t first_row = (blocks - 1 - task / heads) * rows_per_block;
        f(task % heads, first_row, std::min(rows_per_block, shape.seq - first_row));
    }
}

void check_sizes(const AttentionShape& shape) { to_blas(std::max(shape.seq, 3 * shape.heads * shape.head_size)); }

}  // namespace

std::string blas_core() { return openblas_get_corename(); }

std::string better_blas_core(std::string_view core, const std::vector<std::string>& isa) {
    constexpr std::string_view before_avx[] = {"Prescott", "Core2", "Nehalem", "Generic"};
    const auto has = [&](std::string_view name) { return std::find(isa.begin(), isa.end(), name) != isa.end(); };
    if (std::find(std::begin(before_avx), std::end(before_avx), core) == std::end(before_avx)) return "";
    return has("avx512f") ? "SkylakeX" : has("avx2") ? "Haswell" : "";
}

std::string blas_version() {
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
    const std::size_t end = config.find(' ', config.find(' ') + 1);
    // openblas_get_num_threads() gives the threads at its start or of its last product. The next product takes as
    // many as OpenMP has, up to what OpenBLAS was built for.
    constexpr std::string_view limit = "MAX_THREADS=";
    const std::size_t most = config.find(limit);
    const int built_for = most == config.npos ? 0 : std::atoi(config.c_str() + most + limit.size());
    const int threads = built_for > 0 ? std::min(built_for, omp_get_max_threads()) : omp_get_max_threads();
    return fmt::format("{} {}, {} {}", config.substr(0, end), openblas_get_corename(), threads,
                       threads == 1 ? "thread" : "threads");
}

void blas_gemm(DataType type, const Gemm::Product& p, const void* left, const void* right, void* out,
               bool accumulates) {
    with_blas_element(type, [&]<class T>(T) {
        product(p.left_transposed, p.right_transposed, p.m, p.n, p.k, static_cast<const T*>(left), p.left_stride,
                static_cast<const T*>(right), p.right_stride, static_cast<T*>(out), p.out_stride,
                T(accumulates ? 1 : 0));
    });
}

std::size_t blas_attention_workspace(DataType type, const Attention& attention) {
    return static_cast<std::size_t>(omp_get_max_threads() * block_elements(attention.shape)) * size_of(type);
}

void blas_attention(DataType type, const Attention& attention, In<"qkv"> qkv, Out<"lse?"> lse, Out<"out"> out,
                    void* workspace) {
    const AttentionShape& shape = attention.shape;
    check_sizes(shape);
    with_blas_element(type, [&]<class T>(T) {
        const std::int64_t qkv_width = 3 * shape.heads * shape.head_size, width = shape.heads * shape.head_size;
        const T* x = static_cast<const T*>(qkv);
        for_each_block(shape, [&](std::int64_t head, std::int64_t first_row, std::int64_t rows) {
            const std::int64_t keys = first_row + rows;
            T* scores = static_cast<T*>(workspace) + omp_get_thread_num() * block_elements(shape);
            product(false, true, rows, keys, shape.head_size, x + qkv_offset(shape, head, 0) + first_row * qkv_width,
                    qkv_width, x + qkv_offset(shape, head, 1), qkv_width, scores, keys);
            T* row_lse = lse != nullptr ? static_cast<T*>(lse) + head * shape.seq + first_row : nullptr;
            vectorised(
                [&] { causal_softmax(first_row, rows, keys, static_cast<T>(attention.scale), scores, row_lse); });
            product(false, false, rows, shape.head_size, keys, scores, keys, x + qkv_offset(shape, head, 2), qkv_width,
                    static_cast<T*>(out) + out_offset(shape, head) + first_row * width, width);
        });
    });
}

void blas_attention_scores(DataType type, const AttentionShape& shape, const void* qkv, void* scores) {
    check_sizes(shape);
    with_blas_element(type, [&]<class T>(T) {
        const std::int64_t qkv_width = 3 * shape.heads * shape.head_size;
        const T* x = static_cast<const T*>(qkv);
        for_each_block(shape, [&](std::int64_t head, std::int64_t first_row, std::int64_t rows) {
            product(false, true, rows, shape.seq, shape.head_size,
                    x + qkv_offset(shape, head, 0) + first_row * qkv_width, qkv_width, x + qkv_offset(shape, head, 1),
                    qkv_width, static_cast<T*>(scores) + (head * shape.seq + first_row) * shape.seq, shape.seq);
        });
    });
}

void blas_attention_context(DataType type, const AttentionShape& shape, const void* probabilities, const void* qkv,
                            void* out) {
    check_sizes(shape);
    with_blas_element(type, [&]<class T>(T) {
        const std::int64_t qkv_width = 3 * shape.heads * shape.head_size, width = shape.heads * shape.head_size;
        for_each_block(shape, [&](std::int64_t head, std::int64_t first_row, std::int64_t rows) {
            product(false, false, rows, shape.head_size, shape.seq,
                    static_cast<const T*>(probabilities) + (head * shape.seq + first_row) * shape.seq, shape.seq,
                    static_cast<const T*>(qkv) + qkv_offset(shape, head, 2), qkv_width,
                    static_cast<T*>(out) + out_offset(shape, head) + first_row * width, width);
        });
    });
}

std::size_t blas_conv2d_workspace(DataType type, const Conv2d& op) {
    return static_cast<std::size_t>(Im2col(op, positions_at_once, 0).elements()) * size_of(type);
}

void blas_conv2d(DataType type, const Conv2d& op, In<"x"> x, In<"weight"> weight, In<"bias?"> bias, Out<"out"> out,
                 void* workspace) {
    to_blas(std::max(op.out_channels, op.taps()));
    with_blas_element(type, [&]<class T>(T) {
        const Im2col pieces(op, positions_at_once, 0);
        const T* const filters = static_cast<const T*>(weight);
        pieces.for_each_piece(static_cast<T*>(workspace), [&](std::int64_t image, std::int64_t p, std::int64_t first,
                                                              std::int64_t count, T* columns, T* tile) {
            pieces.convolve(static_cast<const T*>(x), filters, static_cast<const T*>(bias), image, p, first, count,
                            columns, tile, static_cast<T*>(out),
                            [&](std::int64_t depth, const T* part, const T* taps, T* sums) {
                                product(false, true, op.out_channels, count, depth, part, op.taps(), taps, depth, sums,
                                        count, T(1));
                            });
        });
    });
}

}  // namespace kbench::cpu
