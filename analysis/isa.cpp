// A table of marks, the narrower name first.
#include "analysis/isa.h"

namespace kbench {

std::string_view instruction_set(std::string_view implementation) {
    struct Mark {
        std::string_view text, name;
    };
    static constexpr Mark marks[] = {
        {"amx", "AMX"},
        {"avx512_core_fp16", "AVX512_FP16"},
        {"avx512_core_bf16", "AVX512_BF16"},
        {"avx512", "AVX-512"},
        {"SapphireRapids", "AVX-512"},
        {"Cooperlake", "AVX-512"},
        {"SkylakeX", "AVX-512"},
        {"avx2", "AVX2"},
        {"Haswell", "AVX2"},
        {"Zen", "AVX2"},
        {"sse41", "SSE4.1"},
    };
    for (const Mark& mark : marks)
        if (implementation.find(mark.text) != implementation.npos) return mark.name;
    return {};
}

}  // namespace kbench
