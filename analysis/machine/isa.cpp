// A table of marks, the narrower name first.
#include "analysis/machine/isa.h"

namespace kbench {

std::string_view instruction_set(std::string_view implementation) {
    struct Mark {
        std::string_view text, name;
    };
    static constexpr Mark marks[] = {
        {"amx", "AMX"},
        {"avx512_core_fp16", "AVX512_FP16"},
        {"avx512_core_bf16", "AVX512_BF16"},
        {"avx512_bf16", "AVX512_BF16"},
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

std::string_view isa_ceiling(std::string_view instruction_set, Precision precision) {
    struct Peak {
        std::string_view instruction_set;
        Precision precision;
        std::string_view ceiling;
    };
    static constexpr Peak peaks[] = {
        {"AMX", Precision::bf16, "amx_bf16"},
        {"AVX512_FP16", Precision::fp16, "avx512_fp16"},
        {"AVX512_BF16", Precision::bf16, "avx512_bf16"},
        {"AVX-512", Precision::fp32, "avx512_fp32"},
        {"AVX-512", Precision::fp64, "avx512_fp64"},
        {"AVX2", Precision::fp32, "avx2_fp32"},
        {"AVX2", Precision::fp64, "avx2_fp64"},
    };
    for (const Peak& peak : peaks)
        if (peak.instruction_set == instruction_set && peak.precision == precision) return peak.ceiling;
    return {};
}

}  // namespace kbench
