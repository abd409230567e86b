// A kernel's record gets what the calculator says of its launch, or the reason why it says nothing.
#include "analysis/machine/kernel_occupancy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/machine/occupancy.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GpuInfo h200() {
    GpuInfo gpu;
    gpu.compute_capability_major = 9;
    gpu.multiprocessors = 132;
    return gpu;
}

/// 128 threads of 128 registers: 4 blocks of 16 warps' worth of registers fill the SM's 64 Ki.
KernelResult launched(std::int64_t blocks) {
    KernelResult kernel;
    kernel.grid = {blocks, 1, 1};
    kernel.block = {32, 4, 1};
    kernel.registers = 128;
    return kernel;
}

void expect_nothing_known(const KernelResult& kernel, const std::string& reason) {
    for (const Quantity& quantity : {kernel.theoretical_occupancy_pct, kernel.waves, kernel.lost_in_last_wave_pct}) {
        EXPECT_EQ(quantity.value, std::nullopt);
        EXPECT_EQ(quantity.origin, Origin::unavailable);
        EXPECT_THAT(quantity.reason, HasSubstr(reason));
    }
    EXPECT_EQ(kernel.blocks_per_sm, 0);
    EXPECT_THAT(kernel.limiters, IsEmpty());
    EXPECT_EQ(kernel.occupancy_hint, "");
}

TEST(KernelOccupancy, IsThatOfTheLaunchInTheRecord) {
    KernelResult kernel = launched(132 * 4 * 3 / 2);
    describe_occupancy(kernel, h200());
    EXPECT_EQ(kernel.theoretical_occupancy_pct.value, 25.0) << "16 of 64 warps";
    EXPECT_EQ(kernel.theoretical_occupancy_pct.origin, Origin::derived);
    EXPECT_EQ(kernel.blocks_per_sm, 4);
    EXPECT_THAT(kernel.limiters, ElementsAre("registers"));
    EXPECT_EQ(kernel.waves.value, 1.5);
    EXPECT_EQ(kernel.lost_in_last_wave_pct.value, 25.0) << "half of the second of two waves";
    EXPECT_THAT(kernel.occupancy_hint, HasSubstr("fewer registers a thread"));
}

TEST(KernelOccupancy, CountsStaticAndDynamicSharedMemory) {
    KernelResult kernel = launched(132);
    kernel.registers = 16;
    kernel.static_shared_bytes = 40 << 10;
    kernel.dynamic_shared_bytes = 72 << 10;
    describe_occupancy(kernel, h200());
    EXPECT_EQ(kernel.blocks_per_sm, 2) << "113 KiB each of 228";
    EXPECT_THAT(kernel.limiters, ElementsAre("shared memory"));
}

TEST(KernelOccupancy, OfAClusterHasNoWaves) {
    KernelResult kernel = launched(264);
    kernel.cluster_blocks = 2;
    describe_occupancy(kernel, h200());
    EXPECT_EQ(kernel.theoretical_occupancy_pct.value, 25.0);
    for (const Quantity& quantity : {kernel.waves, kernel.lost_in_last_wave_pct}) {
        EXPECT_EQ(quantity.origin, Origin::unavailable);
        EXPECT_THAT(quantity.reason, HasSubstr("clusters of 2 blocks"));
    }
}

TEST(KernelOccupancy, WithoutTheNumberOfSmsHasNoWaves) {
    GpuInfo gpu = h200();
    gpu.multiprocessors = 0;
    KernelResult kernel = launched(264);
    describe_occupancy(kernel, gpu);
    EXPECT_EQ(kernel.theoretical_occupancy_pct.value, 25.0);
    EXPECT_THAT(kernel.waves.reason, HasSubstr("number of SMs"));
}

TEST(KernelOccupancy, OfAnUnknownArchitectureIsUnavailableAndReplacesWhatWasThere) {
    GpuInfo gpu = h200();
    KernelResult kernel = launched(132);
    describe_occupancy(kernel, gpu);
    gpu.compute_capability_minor = 9;
    describe_occupancy(kernel, gpu);
    expect_nothing_known(kernel, "compute capability 9.9");
}

TEST(KernelOccupancy, OfAnImpossibleLaunchSaysWhatIsImpossible) {
    KernelResult kernel = launched(132);
    kernel.block = {1024, 2, 1};
    describe_occupancy(kernel, h200());
    expect_nothing_known(kernel, "threads a block 2048");
    kernel.block = {std::int64_t{1} << 32, 1, 1};
    describe_occupancy(kernel, h200());
    expect_nothing_known(kernel, "threads a block");
}

}  // namespace
}  // namespace kbench
