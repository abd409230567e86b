// What this oneDNN can compute on this CPU, and why not what it cannot.
#include <dnnl.hpp>

#include <fmt/format.h>

#include "cpu/onednn/onednn.h"

namespace kbench::cpu {
namespace {

/// oneDNN's ISAs are bit sets; a wider one contains those that it extends (dnnl_types.h). From wide to narrow:
struct Isa {
    dnnl_cpu_isa_t bits;
    const char* name;
};
constexpr Isa isas[] = {
    {dnnl_cpu_isa_avx512_core_amx_fp16, "avx512_core_amx_fp16"},
    {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
    {dnnl_cpu_isa_avx512_core_fp16, "avx512_core_fp16"},
    {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
    {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
    {dnnl_cpu_isa_avx512_core, "avx512_core"},
    {dnnl_cpu_isa_avx2_vnni_2, "avx2_vnni_2"},
    {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
    {dnnl_cpu_isa_avx2, "avx2"},
    {dnnl_cpu_isa_avx, "avx"},
    {dnnl_cpu_isa_sse41, "sse41"},
};

bool has(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

}  // namespace

std::string onednn_version() {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_isa() {
    for (const Isa& isa : isas)
        if (has(isa.bits)) return isa.name;
    return "x86_64";
}

std::string onednn_unsupported(Precision precision) {
    switch (precision) {
        case Precision::fp32: return "";
        case Precision::fp64: return "oneDNN has no fp64; the blas provider computes it";
        case Precision::tf32: return "tf32 is a GPU tensor-core format; oneDNN on a CPU has none";
        case Precision::bf16:
            // With plain AVX-512 oneDNN converts to fp32 and back, which is different arithmetic.
            if (has(dnnl_cpu_isa_avx512_core_bf16)) return "";
            return fmt::format("bf16 needs AVX512_BF16 or AMX; this CPU has {}", onednn_isa());
        case Precision::fp16:
            if (has(dnnl_cpu_isa_avx512_core_fp16)) return "";
            return fmt::format("fp16 needs AVX512_FP16; this CPU has {}", onednn_isa());
    }
    return fmt::format("unknown precision {}", static_cast<int>(precision));
}

}  // namespace kbench::cpu
