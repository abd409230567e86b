// Rows are copied as they are; a task has one kv head of one sequence, whose rows of a cache follow each other.
#include "cpu/native/prompt.h"

#include <algorithm>

#include "cpu/vector.h"

namespace kbench::cpu {

void fill_cache(DataType type, const FillCache& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                Out<"value_cache"> value_cache) {
    with_element(type, [&]<class T>(T) {
        T* const caches[] = {static_cast<T*>(key_cache), static_cast<T*>(value_cache)};
#pragma omp parallel for schedule(static)
        for (std::int64_t head = 0; head < op.batch * op.kv_heads; ++head) {
            const std::int64_t sequence = head / op.kv_heads, kv_head = head % op.kv_heads;
            const T* from = static_cast<const T*>(qkv) + sequence * op.seq * op.qkv_width() + op.first_key_column() +
                            kv_head * op.head_size;
            for (std::int64_t token = 0; token < op.seq; ++token, from += op.qkv_width())
                for (std::int64_t of = 0; of < 2; ++of)
                    std::copy_n(from + of * op.kv_width(), op.head_size,
                                caches[of] + (head * op.capacity + token) * op.head_size);
        }
    });
}

void last_token(DataType type, const LastToken& op, In<"x"> x, Out<"out"> out) {
    with_element(type, [&]<class T>(T) {
        for (std::int64_t sequence = 0; sequence < op.batch; ++sequence)
            std::copy_n(static_cast<const T*>(x) + op.row_of(sequence) * op.width, op.width,
                        static_cast<T*>(out) + sequence * op.width);
    });
}

}  // namespace kbench::cpu
