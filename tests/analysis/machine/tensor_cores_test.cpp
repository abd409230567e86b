// The table of tensor cores: which instruction is fastest on which chip, and what its kernels are compiled for.
#include "analysis/machine/tensor_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace kbench {
namespace {

TEST(TensorCores, KnowTheFastestInstructionOfEachCapability) {
    EXPECT_EQ(tensor_cores(7, 0).family, TensorFamily::mma_sync);
    EXPECT_EQ(tensor_cores(8, 0).family, TensorFamily::mma_sync);
    EXPECT_EQ(tensor_cores(8, 9).family, TensorFamily::mma_sync);
    EXPECT_EQ(tensor_cores(9, 0).family, TensorFamily::wgmma);
    EXPECT_EQ(tensor_cores(10, 0).family, TensorFamily::tcgen05);
    EXPECT_EQ(tensor_cores(10, 3).family, TensorFamily::tcgen05);
    EXPECT_EQ(tensor_cores(11, 0).family, TensorFamily::tcgen05);
    EXPECT_EQ(tensor_cores(12, 0).family, TensorFamily::mma_sync) << "such as an RTX 5090, which has no tcgen05";
    EXPECT_EQ(tensor_cores(13, 0).family, TensorFamily::unknown);
}

TEST(TensorCores, WhoseKernelsNeedATargetOfTheirOwnAreCompiledForIt) {
    std::ifstream file(KBENCH_SOURCE_DIR "/kernels/CMakeLists.txt");
    const std::string rules{std::istreambuf_iterator<char>(file), {}};
    int found = 0;
    for (const TensorCores& row : tensor_core_table()) {
        if (row.build_target.empty()) continue;
        EXPECT_THAT(rules, testing::HasSubstr("CUDA_ARCHITECTURES " + std::string(row.build_target)));
        ++found;
    }
    EXPECT_EQ(found, 1) << "wgmma's";
}

}  // namespace
}  // namespace kbench
