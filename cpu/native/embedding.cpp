// Each row of the output is one vectorised call; rows are shared among OpenMP threads.
#include "cpu/native/embedding.h"

#include "cpu/vector.h"

namespace kbench::cpu {

void embedding(DataType type, const Embedding& op, const std::int32_t* tokens, const void* wte, const void* wpe,
               void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            const T* token = static_cast<const T*>(wte) + tokens[row] * op.width;
            const T* position = static_cast<const T*>(wpe) + row % op.seq * op.width;
            T* to = static_cast<T*>(out) + row * op.width;
            vectorised([=, width = op.width] {
#pragma omp simd
                for (std::int64_t c = 0; c < width; ++c) store(to[c], load(token[c]) + load(position[c]));
            });
        }
    });
}

}  // namespace kbench::cpu
