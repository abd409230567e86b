// The table of ceilings, in the order in which they are shown.
#include "analysis/machine/ceiling_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kbench {
namespace {

constexpr CeilingKind kinds[] = {
    {"dram_read", "GB/s", "cuda", "read of buffers far larger than L2"},
    {"dram_write", "GB/s", "cuda", "write of the same"},
    {"dram_copy", "GB/s", "cuda", "copy, bytes read and written"},
    {"dram_triad", "GB/s", "cuda", "a = b + s c, bytes read and written"},
    {"l2_read", "GB/s", "cuda", "read of a buffer that stays in L2, in each of its partitions, past L1"},
    {"l2_far_read", "GB/s", "cuda", "read of 5/8 of L2, more than one of two partitions holds; no roof"},
    {"l1_read", "GB/s", "cuda", "global loads that hit L1, all SMs"},
    {"shared_read", "GB/s", "cuda", "loads from shared memory without bank conflicts, all SMs"},
    {"special", "Ginst/s", "cuda", "ex2 by the special-function unit, instructions of a warp"},
    {"load_store", "Ginst/s", "cuda", "shuffles by the load-store unit, instructions of a warp"},
    {"fp16_plain", "TFLOP/s", "cuda", "HFMA2 chains in registers"},
    {"fp32_plain", "TFLOP/s", "cuda", "FFMA chains in registers"},
    {"fp64_plain", "TFLOP/s", "cuda", "DFMA chains in registers"},
    {"fp16_tensor", "TFLOP/s", "cuda", "tensor cores, fp16 inputs and fp32 sums"},
    {"bf16_tensor", "TFLOP/s", "cuda", "tensor cores, bf16 inputs and fp32 sums"},
    {"tf32_tensor", "TFLOP/s", "cuda", "tensor cores, tf32 inputs and fp32 sums"},
    {"fp64_tensor", "TFLOP/s", "cuda", "tensor cores, fp64"},
    {"fp16_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where another instruction is faster"},
    {"bf16_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where another instruction is faster"},
    {"tf32_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where another instruction is faster"},
    {"launch", "us", "cuda", "from start to start of empty kernels on a stream"},
    {"graph_node", "us", "cuda", "from start to start of empty kernels in a CUDA graph"},
    {"grid_barrier", "us", "cuda", "one barrier among one block an SM, by one atomic"},
    {"cpu_dram_read", "GB/s", "cpu", "read of buffers far larger than the caches, all cores"},
    {"cpu_dram_triad", "GB/s", "cpu", "a = b + s c with non-temporal stores, all cores"},
    {"cpu_dram_read_one_core", "GB/s", "cpu", "the read by one core"},
    {"cpu_dram_triad_one_core", "GB/s", "cpu", "the triad by one core"},
    {"avx2_fp32", "TFLOP/s", "cpu", "FMA chains in registers, AVX2, all cores"},
    {"avx2_fp64", "TFLOP/s", "cpu", "the same in fp64"},
    {"avx512_fp32", "TFLOP/s", "cpu", "FMA chains in registers, AVX-512, all cores"},
    {"avx512_fp64", "TFLOP/s", "cpu", "the same in fp64"},
    {"avx512_fp16", "TFLOP/s", "cpu", "FMA chains in registers, AVX512_FP16, all cores"},
    {"avx512_bf16", "TFLOP/s", "cpu", "dot products of bf16 pairs in registers, AVX512_BF16, all cores"},
    {"amx_bf16", "TFLOP/s", "cpu", "products of tiles, AMX, bf16 inputs and fp32 sums, all cores"},
    {"avx2_fp32_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx2_fp64_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp32_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp64_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp16_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_bf16_one_core", "TFLOP/s", "cpu", "one core"},
    {"amx_bf16_one_core", "TFLOP/s", "cpu", "one core"},
    {"neon_fp32", "TFLOP/s", "cpu", "NEON and SVE of Arm, all cores; only stated, kbench has no probe", false},
    {"neon_fp64", "TFLOP/s", "cpu", "the same in fp64", false},
    {"neon_fp16", "TFLOP/s", "cpu", "the same in fp16", false},
    {"neon_bf16", "TFLOP/s", "cpu", "the same in bf16, fp32 sums", false},
};

}  // namespace

std::span<const CeilingKind> ceiling_kinds() { return kinds; }

const CeilingKind& ceiling_kind(std::string_view name) {
    const auto* found = std::ranges::find(kinds, name, &CeilingKind::name);
    if (found == std::end(kinds)) throw std::out_of_range(fmt::format("no ceiling is called {}", name));
    return *found;
}

bool is_within_sm(std::string_view ceiling) {
    const std::string_view unit = ceiling_kind(ceiling).unit;
    return unit == "TFLOP/s" || unit == "Ginst/s" || ceiling == "l1_read" || ceiling == "shared_read";
}

}  // namespace kbench
