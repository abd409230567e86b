// The new keys and values are copied into the caches. Then a task takes a block of keys of one kv head: it makes the
// block's part of the output of every query head in the group, so that keys and values come from memory once. The parts
// are merged last, in the blocks' order.
#include "cpu/native/cached_attention.h"

#include <algorithm>
#include <limits>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Keys of a task: with their values they stay in L2 while each query of a group reads them, and 20 heads over 1024
/// keys are 160 tasks.
constexpr std::int64_t block = 128;

std::int64_t blocks_of(const CachedAttention& op) { return (op.keys() + block - 1) / block; }

/// What a query has of one block: its q in the computing type, its sum of p v, the largest score (times the scale, in
/// powers of two) and the sum of p.
template <class C>
struct Part {
    C *q, *out, *maximum, *sum;

    static std::int64_t elements(std::int64_t head_size) { return 2 * head_size + 2; }
    Part(C* memory, std::int64_t index, std::int64_t head_size)
        : q(memory + index * elements(head_size)), out(q + head_size), maximum(out + head_size), sum(maximum + 1) {}
};

template <class T, class C = Compute<T>>
class Attending {
  public:
    Attending(const CachedAttention& op, const T* qkv, T* key_cache, T* value_cache, const std::int32_t* positions,
              T* out, C* parts)
        : op_(op), qkv_(qkv), keys_(key_cache), values_(value_cache), positions_(positions), out_(out), parts_(parts) {}

    /// New token `row` of the batch: its keys and values of all kv heads.
    void append(std::int64_t row) const {
        const std::int64_t sequence = row / op_.queries, key = positions_[sequence] + row % op_.queries;
        const T* from = qkv_ + row * op_.qkv_width() + op_.heads * op_.head_size;
        for (T* cache : {keys_, values_})
            for (std::int64_t head = 0; head < op_.kv_heads; ++head, from += op_.head_size)
                std::copy_n(from, op_.head_size, row_of(cache, sequence * op_.kv_heads + head, key));
    }

    /// The block of keys from `first` on, for all queries of the kv head (of all sequences').
    void attend(std::int64_t kv_head, std::int64_t first) const {
        const std::int64_t size = op_.head_size, sequence = kv_head / op_.kv_heads;
        const std::int64_t position = positions_[sequence];
        for (std::int64_t i = 0; i < op_.queries; ++i) {
            const std::int64_t own = position + i;
            const std::int64_t begin = std::max(first, op_.first_key(own)), end = std::min(first + block, own + 1);
            for (std::int64_t g = 0; g < op_.group(); ++g) {
                const std::int64_t head = kv_head % op_.kv_heads * op_.group() + g;
                const Part<C> part = part_of(sequence, head, i, first / block);
                *part.maximum = -std::numeric_limits<C>::infinity();
                *part.sum = 0;
                if (begin >= end) continue;
                const T* q = qkv_ + (sequence * op_.queries + i) * op_.qkv_width() + head * size;
#pragma omp simd
                for (std::int64_t c = 0; c < size; ++c) part.q[c] = load(q[c]), part.out[c] = 0;
                add_keys(part, row_of(keys_, kv_head, begin), row_of(values_, kv_head, begin), end - begin);
            }
        }
    }

    /// The output of query head `head` of new token `row`, from its parts.
    void merge(std::int64_t row, std::int64_t head) const {
        const std::int64_t size = op_.head_size, sequence = row / op_.queries, i = row % op_.queries;
        C maximum = -std::numeric_limits<C>::infinity(), sum = 0;
        for (std::int64_t b = 0; b < blocks_of(op_); ++b)
            maximum = larger(*part_of(sequence, head, i, b).maximum, maximum);
        C* const total = part_of(sequence, head, i, 0).q;  // which nobody needs any more
        std::fill(total, total + size, C(0));
        for (std::int64_t b = 0; b < blocks_of(op_); ++b) {
            const Part<C> part = part_of(sequence, head, i, b);
            if (*part.sum == 0) continue;  // no key of it is visible
            const C weight = exp2_vector(*part.maximum - maximum);
            sum += weight * *part.sum;
#pragma omp simd
            for (std::int64_t c = 0; c < size; ++c) total[c] += weight * part.out[c];
        }
        T* const to = out_ + (row * op_.heads + head) * size;
#pragma omp simd
        for (std::int64_t c = 0; c < size; ++c) store(to[c], total[c] / sum);
    }

  private:
    T* row_of(T* cache, std::int64_t kv_head, std::int64_t key) const {
        return cache + (kv_head * op_.keys() + key) * op_.head_size;
    }
    Part<C> part_of(std::int64_t sequence, std::int64_t head, std::int64_t query, std::int64_t of_block) const {
        const std::int64_t row = (sequence * op_.heads + head) * op_.queries + query;
        return Part<C>(parts_, row * blocks_of(op_) + of_block, op_.head_size);
    }

    void add_keys(const Part<C>& part, const T* key, const T* value, std::int64_t count) const {
        const std::int64_t size = op_.head_size;
        const C scale = static_cast<C>(op_.scale) * log2_e<C>;
        C scores[block];
        C maximum = -std::numeric_limits<C>::infinity();
        for (std::int64_t j = 0; j < count; ++j, key += size) {
            const C* q = part.q;
            scores[j] = scale * sum_over<C>(size, [=](std::int64_t c) { return q[c] * load(key[c]); });
            maximum = larger(scores[j], maximum);
        }
        C sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < count; ++j) {
            scores[j] = exp2_vector(scores[j] - maximum);
            sum += scores[j];
        }
        for (std::int64_t j = 0; j < count; ++j, value += size) {
            const C p = scores[j];
            C* out = part.out;
#pragma omp simd
            for (std::int64_t c = 0; c < size; ++c) out[c] += p * load(value[c]);
        }
        *part.maximum = maximum;
        *part.sum = sum;
    }

    const CachedAttention& op_;
    const T* qkv_;
    T *keys_, *values_;
    const std::int32_t* positions_;
    T* out_;
    C* parts_;
};

}  // namespace

std::size_t cached_attention_workspace(DataType type, const CachedAttention& op) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const std::int64_t parts = op.batch * op.heads * op.queries * blocks_of(op);
        bytes = static_cast<std::size_t>(parts * Part<C>::elements(op.head_size)) * sizeof(C);
    });
    return bytes;
}

void cached_attention(DataType type, const CachedAttention& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                      Out<"value_cache"> value_cache, In<"positions", std::int32_t> positions, Out<"out"> out,
                      void* workspace) {
    with_element(type, [&]<class T>(T) {
        const Attending<T> attending(op, static_cast<const T*>(qkv), static_cast<T*>(key_cache),
                                     static_cast<T*>(value_cache), positions, static_cast<T*>(out),
                                     static_cast<Compute<T>*>(workspace));
        const std::int64_t rows = op.batch * op.queries, blocks = blocks_of(op);
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (std::int64_t row = 0; row < rows; ++row) attending.append(row);
#pragma omp for schedule(dynamic)
            for (std::int64_t task = 0; task < op.batch * op.kv_heads * blocks; ++task)
                vectorised([&] { attending.attend(task / blocks, task % blocks * block); });
#pragma omp for schedule(static)
            for (std::int64_t task = 0; task < rows * op.heads; ++task)
                vectorised([&] { attending.merge(task / op.heads, task % op.heads); });
        }
    });
}

}  // namespace kbench::cpu
