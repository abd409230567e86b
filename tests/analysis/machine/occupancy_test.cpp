// The occupancy calculator against cases worked out by hand from the documented limits, and against what must hold for
// every launch. tests/kernels/occupancy_test.cu compares it with the toolkit's own and with the driver.
#include "analysis/machine/occupancy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Parameter = OccupancyStep::Parameter;

constexpr Limiter R = Limiter::registers, S = Limiter::shared, W = Limiter::warps, B = Limiter::blocks,
                  BAR = Limiter::barriers;

DeviceLimits architecture(int sm, int multiprocessors = 0) {
    return device_limits(sm / 10, sm % 10, multiprocessors).value();
}

LaunchShape shape(int threads, int registers, std::int64_t bytes = 0) {
    return {.block_threads = threads,
            .registers_per_thread = registers,
            .static_shared_bytes = 0,
            .dynamic_shared_bytes = bytes,
            .grid_blocks = 1,
            .cluster_blocks = 1,
            .barriers = std::nullopt};
}

struct KnownCase {
    int sm, threads, registers;
    std::int64_t bytes;
    int blocks, warps;
    std::vector<Limiter> limiters;
    int barriers = 0;
};

class KnownOccupancy : public testing::TestWithParam<KnownCase> {};

TEST_P(KnownOccupancy, HasTheBlocksWarpsAndLimitersOfTheRules) {
    const KnownCase& known = GetParam();
    const DeviceLimits device = architecture(known.sm);
    LaunchShape launch = shape(known.threads, known.registers, known.bytes);
    launch.barriers = known.barriers;
    const Occupancy occupancy = theoretical_occupancy(device, launch);
    EXPECT_EQ(occupancy.blocks_per_sm, known.blocks);
    EXPECT_EQ(occupancy.active_warps, known.warps);
    EXPECT_EQ(occupancy.limiters, known.limiters);
    EXPECT_DOUBLE_EQ(occupancy.occupancy, known.warps / static_cast<double>(device.max_warps_per_sm));
}

constexpr std::int64_t KiB = 1024;

const KnownCase known_cases[] = {
    // No one resource: 64 warps, of 32 registers a thread, fill registers and warps alike.
    {90, 256, 32, 0, 8, 64, {R, W}},
    {90, 1024, 32, 0, 2, 64, {R, W}},
    {90, 64, 32, 0, 32, 64, {R, W, B}},
    {80, 256, 32, 0, 8, 64, {R, W}},
    {100, 256, 32, 0, 8, 64, {R, W}},
    {86, 256, 40, 0, 6, 48, {R, W}},
    {120, 64, 40, 0, 24, 48, {R, W, B}},
    // Registers: 65536 in four partitions, a warp's rounded up to 256.
    {90, 128, 255, 0, 2, 8, {R}},
    {90, 256, 255, 0, 1, 8, {R}},
    {90, 160, 255, 0, 1, 5, {R}},
    {90, 1024, 64, 0, 1, 32, {R}},
    {90, 256, 40, 0, 6, 48, {R}},
    {90, 256, 41, 0, 5, 40, {R}},
    {90, 96, 33, 0, 16, 48, {R}},
    {90, 256, 168, 0, 1, 8, {R}},
    {90, 128, 168, 0, 3, 12, {R}},
    {90, 384, 168, 0, 1, 12, {R}},
    {70, 128, 64, 0, 8, 32, {R}},
    {75, 256, 96, 0, 2, 16, {R}},
    // A partition of 16384 holds 2 warps of 6400, not 2.56: together 8 warps, where an undivided file would hold 10.
    {90, 32, 200, 0, 8, 8, {R}},
    // Shared memory: with the reserved KiB of 8.0 and later, in units of 128 bytes; before, of 256.
    {90, 256, 16, 100 * KiB, 2, 16, {S}},
    {90, 256, 32, 227 * KiB, 1, 8, {S}},
    {90, 128, 64, 48 * KiB, 4, 16, {S}},
    {90, 128, 16, 76800, 3, 12, {S}},
    {90, 128, 16, 76801, 2, 8, {S}},
    {100, 128, 16, 113 * KiB, 2, 8, {S}},
    {103, 128, 16, 114 * KiB, 1, 4, {S}},
    {80, 128, 16, 163 * KiB, 1, 4, {S}},
    {80, 256, 16, 81 * KiB, 2, 16, {S}},
    {80, 256, 16, 81 * KiB + 1, 1, 8, {S}},
    {87, 256, 16, 81 * KiB, 2, 16, {S}},
    {86, 128, 32, 49 * KiB, 2, 8, {S}},
    {89, 128, 32, 50 * KiB, 1, 4, {S}},
    {120, 128, 32, 32 * KiB, 3, 12, {S}},
    {75, 256, 32, 32 * KiB, 2, 16, {S}},
    {70, 256, 32, 48 * KiB, 2, 16, {S}},
    {70, 64, 16, 3072, 32, 64, {S, W, B}},
    {70, 64, 16, 3073, 29, 58, {S}},
    // Warps: what a block cannot use of the last ones is lost.
    {90, 768, 24, 0, 2, 48, {W}},
    {90, 640, 24, 0, 3, 60, {W}},
    {86, 1024, 32, 0, 1, 32, {W}},
    {75, 1024, 32, 0, 1, 32, {W}},
    // Blocks.
    {90, 32, 16, 0, 32, 32, {B}},
    {103, 32, 16, 0, 32, 32, {B}},
    {86, 32, 16, 0, 16, 16, {B}},
    {87, 64, 16, 0, 16, 32, {B}},
    {89, 32, 16, 0, 24, 24, {B}},
    {120, 32, 16, 0, 24, 24, {B}},
    {75, 32, 16, 0, 16, 16, {B}},
    // A warp in part empty takes a whole warp's place.
    {90, 1, 16, 0, 32, 32, {B}},
    {90, 33, 16, 0, 32, 64, {W, B}},
    {90, 129, 16, 0, 12, 60, {W}},
    // No registers at all.
    {90, 256, 0, 0, 8, 64, {W}},
    // Barriers limit from 9.0 on only: 64 an SM, and 24 on 12.0.
    {90, 128, 16, 0, 4, 16, {BAR}, 16},
    {90, 128, 16, 0, 12, 48, {BAR}, 5},
    {90, 128, 16, 0, 16, 64, {W}, 1},
    {120, 64, 16, 0, 12, 24, {BAR}, 2},
    {80, 128, 16, 0, 16, 64, {W}, 16},
};

INSTANTIATE_TEST_SUITE_P(Cases, KnownOccupancy, testing::ValuesIn(known_cases), [](const auto& instance) {
    const KnownCase& known = instance.param;
    return fmt::format("sm{}_{}threads_{}registers_{}bytes_{}barriers", known.sm, known.threads, known.registers,
                       known.bytes, known.barriers);
});

TEST(Occupancy, GivesTheBlocksOfEveryLimiter) {
    LaunchShape launch = shape(192, 72, 20 * KiB);
    launch.static_shared_bytes = 4 * KiB;  // adds to the dynamic
    launch.barriers = 4;
    const Occupancy occupancy = theoretical_occupancy(architecture(90), launch);
    EXPECT_EQ(occupancy.blocks_by(Limiter::registers), 4);  // 7 warps of 2304 in each partition: 28 / 6
    EXPECT_EQ(occupancy.blocks_by(Limiter::shared), 9);     // 228 / 25
    EXPECT_EQ(occupancy.blocks_by(Limiter::warps), 10);
    EXPECT_EQ(occupancy.blocks_by(Limiter::blocks), 32);
    EXPECT_EQ(occupancy.blocks_by(Limiter::barriers), 16);
    EXPECT_THAT(occupancy.limiters, ElementsAre(Limiter::registers));
    EXPECT_EQ(theoretical_occupancy(architecture(70), shape(64, 0)).blocks_by(Limiter::shared), unlimited_blocks);
}

TEST(Occupancy, KnowsNoArchitectureButThoseOfTheTable) {
    for (const auto& [major, minor] : {std::pair{0, 0}, {6, 1}, {7, 2}, {8, 8}, {9, 1}, {10, 7}, {12, 9}, {90, 0}})
        EXPECT_FALSE(device_limits(major, minor)) << major << "." << minor;
    const DeviceLimits h200 = architecture(90, 132);
    EXPECT_EQ(h200.compute_capability_major, 9);
    EXPECT_EQ(h200.compute_capability_minor, 0);
    EXPECT_EQ(h200.multiprocessors, 132);
    EXPECT_EQ(architecture(103).compute_capability_minor, 3);
}

/// Calls `visit(device, launch)` for launches of every architecture that it would not refuse.
template <typename Visit>
void for_each_launch(Visit visit) {
    for (const DeviceLimits& device : known_architectures)
        for (const int threads : {1, 32, 64, 96, 128, 160, 256, 384, 500, 512, 768, 1024})
            for (int registers = 0; registers <= 255; registers += 5)
                for (std::int64_t bytes = 0; bytes <= device.max_shared_bytes_per_block; bytes += 9001) {
                    const LaunchShape launch = shape(threads, registers, bytes);
                    const int warps = (threads + 31) / 32;
                    if ((warps + 3) / 4 * 4 * ((registers + 7) / 8 * 8) * 32 > 65536) continue;
                    SCOPED_TRACE(fmt::format("sm_{}{}: {} threads, {} registers, {} bytes",
                                             device.compute_capability_major, device.compute_capability_minor, threads,
                                             registers, bytes));
                    visit(device, launch);
                    if (testing::Test::HasFailure()) return;
                }
}

TEST(OccupancyOfAnyLaunch, IsPositiveAndAtMostOne) {
    int launches = 0;
    for_each_launch([&](const DeviceLimits& device, const LaunchShape& launch) {
        const Occupancy occupancy = theoretical_occupancy(device, launch);
        ASSERT_GT(occupancy.occupancy, 0);
        ASSERT_LE(occupancy.occupancy, 1);
        ASSERT_FALSE(occupancy.limiters.empty());
        ++launches;
    });
    EXPECT_GT(launches, 10000);
}

TEST(OccupancyOfAnyLaunch, NeverFallsWithFewerRegistersOrLessSharedMemory) {
    for_each_launch([](const DeviceLimits& device, const LaunchShape& launch) {
        const double now = theoretical_occupancy(device, launch).occupancy;
        LaunchShape less = launch;
        if (less.registers_per_thread > 0) --less.registers_per_thread;
        ASSERT_GE(theoretical_occupancy(device, less).occupancy, now);
        less = launch;
        less.dynamic_shared_bytes = std::max<std::int64_t>(0, less.dynamic_shared_bytes - 100);
        ASSERT_GE(theoretical_occupancy(device, less).occupancy, now);
    });
}

TEST(OccupancyOfAnyLaunch, StepsAreTheNearestThatRaiseIt) {
    for_each_launch([](const DeviceLimits& device, const LaunchShape& launch) {
        const Occupancy now = theoretical_occupancy(device, launch);
        for (const OccupancyStep& step : now.steps) {
            const auto with = [&](std::int64_t value) {
                LaunchShape changed = launch;
                if (step.parameter == Parameter::registers_per_thread)
                    changed.registers_per_thread = static_cast<int>(value);
                if (step.parameter == Parameter::shared_bytes) changed.dynamic_shared_bytes = value;
                if (step.parameter == Parameter::block_threads) changed.block_threads = static_cast<int>(value);
                return theoretical_occupancy(device, changed);
            };
            const Occupancy then = with(step.to);
            ASSERT_GT(then.occupancy, now.occupancy);
            ASSERT_DOUBLE_EQ(then.occupancy, step.occupancy);
            ASSERT_EQ(then.blocks_per_sm, step.blocks_per_sm);
            if (step.parameter == Parameter::block_threads) continue;
            ASSERT_LT(step.to, step.from);
            ASSERT_DOUBLE_EQ(with(step.to + 1).occupancy, now.occupancy);  // one more would not do
        }
    });
}

TEST(OccupancyStep, OfRegistersIsTheLargestCountThatAddsABlock) {
    const Occupancy occupancy = theoretical_occupancy(architecture(90), shape(256, 64));
    ASSERT_FALSE(occupancy.steps.empty());
    const OccupancyStep& step = occupancy.steps.front();
    EXPECT_EQ(step.parameter, Parameter::registers_per_thread);
    EXPECT_EQ(step.from, 64);
    EXPECT_EQ(step.to, 48);  // 48 is 10 warps in each partition: 5 blocks; 49 to 56 is 9, 36 warps: still 4
    EXPECT_EQ(step.blocks_per_sm, 5);
    EXPECT_EQ(describe(step, occupancy.occupancy), "16 fewer registers a thread (48): 50 % -> 62 %");
}

TEST(OccupancyStep, OfSharedMemoryIsTheMostBytesThatAddABlock) {
    LaunchShape launch = shape(128, 32, 60 * KiB);
    launch.static_shared_bytes = 40 * KiB;
    const Occupancy occupancy = theoretical_occupancy(architecture(90), launch);
    ASSERT_FALSE(occupancy.steps.empty());
    const OccupancyStep& step = occupancy.steps.front();
    EXPECT_EQ(step.parameter, Parameter::shared_bytes);
    EXPECT_EQ(step.from, 100 * KiB);
    EXPECT_EQ(step.to, 75 * KiB);  // 228 KiB / 3, less the reserved one
    EXPECT_EQ(step.blocks_per_sm, 3);
    EXPECT_EQ(describe(step, occupancy.occupancy), "25600 fewer bytes of shared memory a block (76800): 12 % -> 19 %");
}

TEST(OccupancyStep, OfBlockSizeGoesEitherWay) {
    EXPECT_EQ(occupancy_hint(theoretical_occupancy(architecture(90), shape(32, 16))),
              "blocks of 64 threads, not 32: 50 % -> 100 %");
    EXPECT_EQ(occupancy_hint(theoretical_occupancy(architecture(90), shape(768, 24))),
              "blocks of 640 threads, not 768: 75 % -> 94 %");
    // 128 and 384 threads are as near and give 12 warps each; the smaller block is preferred.
    const Occupancy occupancy = theoretical_occupancy(architecture(90), shape(256, 168));
    ASSERT_FALSE(occupancy.steps.empty());
    EXPECT_EQ(occupancy.steps.back().parameter, Parameter::block_threads);
    EXPECT_EQ(occupancy.steps.back().to, 128);
}

TEST(OccupancyStep, NeverAsksForABlockThatTheDeviceWouldRefuse) {
    // 1024 threads would be limited to 64 registers a thread.
    for (const OccupancyStep& step : theoretical_occupancy(architecture(90), shape(512, 104)).steps)
        EXPECT_TRUE(step.parameter != Parameter::block_threads || step.to <= 512) << step.to;
}

TEST(OccupancyHint, SaysSoWhenNothingCanBeGained) {
    const Occupancy full = theoretical_occupancy(architecture(90), shape(256, 32));
    EXPECT_THAT(full.steps, IsEmpty());
    EXPECT_EQ(occupancy_hint(full), "occupancy is 100 %");
}

TEST(OccupancyHint, NamesTheLimitersThatBindTogether) {
    // 4 blocks of 4 warps by registers (128) and by shared memory; larger blocks would not fit, smaller ones not help.
    const Occupancy occupancy = theoretical_occupancy(architecture(90), shape(128, 128, 48 * KiB));
    EXPECT_THAT(occupancy.limiters, ElementsAre(Limiter::registers, Limiter::shared));
    EXPECT_THAT(occupancy.steps, IsEmpty());
    EXPECT_EQ(occupancy_hint(occupancy), "no single change raises 25 %; limited by registers and shared memory");
}

TEST(OccupancyHint, ListsEveryStep) {
    EXPECT_EQ(occupancy_hint(theoretical_occupancy(architecture(90), shape(1024, 64))),
              "32 fewer registers a thread (32): 50 % -> 100 %");
    EXPECT_EQ(occupancy_hint(theoretical_occupancy(architecture(90), shape(256, 72))),
              "8 fewer registers a thread (64): 38 % -> 50 %; blocks of 128 threads, not 256: 38 % -> 44 %");
}

struct WavesCase {
    std::int64_t grid;
    double waves, lost_share;
};

TEST(Waves, ShowWhatTheTailCosts) {
    // 8 blocks on each of 132 SMs: 1056 a wave.
    for (const auto& [grid, waves, lost] : {WavesCase{1056, 1, 0}, WavesCase{528, 0.5, 0.5}, WavesCase{1584, 1.5, 0.25},
                                            WavesCase{1057, 1057. / 1056, 1055. / 2112}, WavesCase{10560, 10, 0},
                                            WavesCase{1, 1. / 1056, 1055. / 1056}}) {
        LaunchShape launch = shape(256, 32);
        launch.grid_blocks = grid;
        const auto result = theoretical_occupancy(architecture(90, 132), launch).waves;
        ASSERT_TRUE(result) << grid;
        EXPECT_DOUBLE_EQ(result->waves, waves) << grid;
        EXPECT_DOUBLE_EQ(result->lost_share, lost) << grid;
    }
}

TEST(Waves, AreUnknownWithoutTheNumberOfSmsAndForClusters) {
    LaunchShape launch = shape(256, 32);
    launch.grid_blocks = 1056;
    EXPECT_FALSE(theoretical_occupancy(architecture(90), launch).waves);
    launch.cluster_blocks = 2;
    EXPECT_FALSE(theoretical_occupancy(architecture(90, 132), launch).waves);
}

void expect_refused(const DeviceLimits& device, const LaunchShape& launch, const std::string& value,
                    const std::string& limit) {
    try {
        theoretical_occupancy(device, launch);
        ADD_FAILURE() << "accepted " << value;
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr(value), HasSubstr(limit)));
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
    }
}

TEST(OccupancyErrors, CarryTheValueAndTheLimit) {
    const DeviceLimits h100 = architecture(90), a100 = architecture(80);
    expect_refused(h100, shape(0, 32), "threads a block 0", "1 to 1024");
    expect_refused(h100, shape(1025, 32), "threads a block 1025", "1 to 1024");
    expect_refused(h100, shape(128, 256), "registers a thread 256", "0 to 255");
    expect_refused(h100, shape(128, -1), "registers a thread -1", "0 to 255");
    expect_refused(h100, shape(128, 32, 227 * KiB + 1), "232449", "0 to 232448");
    expect_refused(a100, shape(128, 32, 227 * KiB), "232448", "0 to 166912");
    expect_refused(h100, shape(128, 32, -1), "-1", "0 to 232448");
    expect_refused(h100, shape(128, 32, std::numeric_limits<std::int64_t>::max()), "9223372036854775807", "232448");
    // Registers are charged as 72 for 65 and 256 for 255, warps as 12 for 9.
    expect_refused(h100, shape(1024, 65), "1024 threads of 65 registers take 73728", "65536");
    expect_refused(h100, shape(288, 255), "288 threads of 255 registers take 98304", "65536");

    LaunchShape launch = shape(128, 32, 200 * KiB);
    launch.static_shared_bytes = 28 * KiB;
    expect_refused(h100, launch, "233472", "0 to 232448");
    launch = shape(128, 32);
    launch.grid_blocks = 0;
    expect_refused(h100, launch, "grid of 0 blocks", "at least 1");
    launch = shape(128, 32);
    launch.barriers = 17;
    expect_refused(h100, launch, "barriers a block 17", "0 to 16");
}

TEST(OccupancyErrors, RefuseOneByteMoreThanABlockCanHave) {
    for (const auto& [sm, kibibytes] : {std::pair{70, 96},
                                        {75, 64},
                                        {80, 163},
                                        {86, 99},
                                        {87, 163},
                                        {89, 99},
                                        {90, 227},
                                        {100, 227},
                                        {103, 227},
                                        {120, 99}}) {
        const std::int64_t most = kibibytes * KiB;
        EXPECT_EQ(theoretical_occupancy(architecture(sm), shape(128, 32, most)).blocks_per_sm, 1) << sm;
        expect_refused(architecture(sm), shape(128, 32, most + 1), std::to_string(most + 1), std::to_string(most));
    }
}

TEST(OccupancyErrors, RefuseClustersThatCannotBe) {
    LaunchShape launch = shape(128, 32);
    launch.grid_blocks = 68;
    launch.cluster_blocks = 17;
    expect_refused(architecture(90), launch, "blocks a cluster 17", "1 to 16");
    launch.cluster_blocks = 8;
    expect_refused(architecture(90), launch, "grid of 68 blocks", "clusters of 8");
    launch.cluster_blocks = 4;
    EXPECT_NO_THROW(theoretical_occupancy(architecture(90), launch));
    expect_refused(architecture(80), launch, "blocks a cluster 4", "1 to 1");
}

}  // namespace
}  // namespace kbench
