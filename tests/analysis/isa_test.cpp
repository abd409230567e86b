// Instruction sets by the libraries' names.
#include "analysis/isa.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(InstructionSet, FollowsFromTheLibrarysName) {
    EXPECT_EQ(instruction_set("brg:avx512_core_amx"), "AMX");
    EXPECT_EQ(instruction_set("brg:avx512_core_fp16"), "AVX512_FP16");
    EXPECT_EQ(instruction_set("brg:avx512_core"), "AVX-512");
    EXPECT_EQ(instruction_set("jit:avx2"), "AVX2");
    EXPECT_EQ(instruction_set("OpenBLAS 0.3.21 SkylakeX, 16 threads"), "AVX-512");
    EXPECT_EQ(instruction_set("jit:uni"), "") << "whatever the machine has";
    EXPECT_EQ(instruction_set("cpu::embedding"), "");
}

}  // namespace
}  // namespace kbench
