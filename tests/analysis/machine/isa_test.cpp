// Instruction sets by the libraries' names.
#include "analysis/machine/isa.h"

#include <gtest/gtest.h>

#include "analysis/machine/ceilings.h"

namespace kbench {
namespace {

TEST(InstructionSet, FollowsFromTheLibrarysName) {
    EXPECT_EQ(instruction_set("brg:avx512_core_amx"), "AMX");
    EXPECT_EQ(instruction_set("brg:avx512_core_fp16"), "AVX512_FP16");
    EXPECT_EQ(instruction_set("brg:avx512_core_bf16"), "AVX512_BF16");
    EXPECT_EQ(instruction_set("avx512_bf16 panels, step by step"), "AVX512_BF16");
    EXPECT_EQ(instruction_set("brg:avx512_core"), "AVX-512");
    EXPECT_EQ(instruction_set("jit:avx2"), "AVX2");
    EXPECT_EQ(instruction_set("OpenBLAS 0.3.21 SkylakeX, 16 threads"), "AVX-512");
    EXPECT_EQ(instruction_set("jit:uni"), "") << "whatever the machine has";
    EXPECT_EQ(instruction_set("cpu::embedding"), "");
}

TEST(IsaCeiling, IsOfTheSameInstructionsAndPrecision) {
    EXPECT_EQ(isa_ceiling("AMX", Precision::bf16), "amx_bf16");
    EXPECT_EQ(isa_ceiling("AMX", Precision::fp16), "") << "AMX-FP16 is not measured";
    EXPECT_EQ(isa_ceiling("AVX512_FP16", Precision::fp16), "avx512_fp16");
    EXPECT_EQ(isa_ceiling("AVX-512", Precision::bf16), "") << "bf16 without AVX512_BF16 is widened to fp32 at a cost";
    EXPECT_EQ(isa_ceiling("", Precision::fp32), "");
    for (const std::string_view isa : {"AMX", "AVX512_FP16", "AVX512_BF16", "AVX-512", "AVX2", "SSE4.1"})
        for (const Precision precision : all_precisions)
            if (const std::string_view ceiling = isa_ceiling(isa, precision); !ceiling.empty()) {
                EXPECT_EQ(ceiling_kind(ceiling).backend, "cpu");
                EXPECT_TRUE(ceiling.ends_with(name(precision))) << ceiling;
            }
}

}  // namespace
}  // namespace kbench
