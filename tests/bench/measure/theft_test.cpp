// Which work cannot run beside a thief.
#include "bench/measure/theft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kbench {
namespace {

/// A recurrent layer as on an H100: 500 time steps in a kernel of 128 blocks, one an SM.
StepResult persistent_layer() {
    StepResult step;
    step.implementation = "persistent_lstm<fp16>";
    step.time_steps = 500;
    KernelResult fill, kernel;
    fill.grid = {64, 1, 1};
    fill.blocks_per_sm = 16;
    kernel.grid = {128, 1, 1};
    kernel.blocks_per_sm = 1;
    kernel.waves = Quantity::derived(128.0 / 132);
    step.kernels = {fill, kernel};
    return step;
}

TEST(WhyNotBesideThief, IsABlockThatWouldWaitForOneWithoutAnSm) {
    const std::vector<StepResult> steps{persistent_layer()};
    EXPECT_EQ(why_not_beside_thief(steps, 112),
              "all 128 blocks of persistent_lstm<fp16> must run at once, and a thief leaves room for 112");
    EXPECT_EQ(why_not_beside_thief(steps, 128), "");
}

TEST(WhyNotBesideThief, IsNothingWhereBlocksWaitForNone) {
    StepResult product = persistent_layer(), by_step = persistent_layer(), unknown = persistent_layer(),
               in_waves = persistent_layer(), weights = persistent_layer();
    product.time_steps = {};
    by_step.kernels.assign(500, by_step.kernels.back());
    unknown.kernels.back().blocks_per_sm = 0;
    in_waves.kernels.back().grid[0] = 4000;
    in_waves.kernels.back().waves = Quantity::derived(30);
    weights.direction = Direction::wgrad;
    for (const StepResult& step : {product, by_step, unknown, in_waves, weights})
        EXPECT_EQ(why_not_beside_thief(std::vector{step}, 112), "");
}

}  // namespace
}  // namespace kbench
