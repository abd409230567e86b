// The ceilings of the GPU that is here. Prints every variant that was tried: how far from the best a roof could have
// been had one way alone been measured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <utility>

#include "analysis/machine/ceilings.h"
#include "analysis/machine/tensor_cores.h"
#include "analysis/machine/usable_roofs.h"
#include "bench/device/device.h"
#include "bench/measure/machine/cuda/ceilings.h"

namespace kbench {
namespace {

class Ceilings : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!cuda_unavailable().empty()) return;
        const auto device = make_cuda_device();
        gpu_ = device->info().gpu.value();
        std::string ceiling;
        const auto print = [&](std::string_view name, std::string_view variant, double value) {
            if (name != ceiling) fmt::print("{} ({}), tried:\n", name, ceiling_kind(name).unit);
            ceiling = name;
            fmt::print("  {:10.4g}  {}\n", value, variant);
        };
        device->synchronize();
        const std::int64_t free = device->free_bytes();
        const auto start = std::chrono::steady_clock::now();
        for (Ceiling& measured : cuda::measure_ceilings(*device, 5, print)) ceilings_[measured.name] = measured;
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        kept_bytes_ = free - device->free_bytes();
        fmt::print("{}, {:.1f} s\n", gpu_.name, seconds_);
        for (const CeilingKind& kind : ceiling_kinds()) {
            if (kind.backend != "cuda") continue;
            const Ceiling& c = ceilings_[std::string(kind.name)];
            fmt::print("{:14} {:10.4g} {:8} [{:.4g}, {:.4g}] at {:.0f} MHz {}\n", kind.name, c.value.value.value_or(0),
                       kind.unit, c.low, c.high, c.clock_mhz, c.value.reason);
        }
    }
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
    }

    static const Ceiling& ceiling(const std::string& name) { return ceilings_.at(name); }
    static double value(const std::string& name) { return ceiling(name).value.value.value_or(0); }
    static bool is(int major, int minor) {
        return gpu_.compute_capability_major == major && gpu_.compute_capability_minor == minor;
    }
    /// What all SMs compute at the clock that was measured, in TFLOP/s.
    static double tflop_per_s(const std::string& name, double flops_per_cycle) {
        return flops_per_cycle * gpu_.multiprocessors * ceiling(name).clock_mhz * 1e6 * 1e-12;
    }

    static inline GpuInfo gpu_;
    static inline std::map<std::string, Ceiling> ceilings_;
    static inline double seconds_ = 0;
    static inline std::int64_t kept_bytes_ = 0;
};

TEST_F(Ceilings, AreAllMeasuredWithinTheirInterval) {
    for (const CeilingKind& kind : ceiling_kinds()) {
        if (kind.backend != "cuda") continue;
        SCOPED_TRACE(kind.name);
        const Ceiling& c = ceiling(std::string(kind.name));
        if (kind.name.ends_with("_mma_sync") && tensor_cores(gpu_).family == TensorFamily::mma_sync) {
            EXPECT_FALSE(c.value.value) << "it is the ceiling of tensor cores";
            continue;
        }
        if (kind.name.ends_with("_tensor") && kind.name != "fp64_tensor" && !no_tensor_roof(gpu_).empty()) {
            EXPECT_EQ(c.value.reason, no_tensor_roof(gpu_));
            continue;
        }
        ASSERT_TRUE(c.value.value) << c.value.reason;
        EXPECT_EQ(c.value.origin, Origin::measured);
        EXPECT_GT(*c.value.value, 0);
        EXPECT_LE(c.low, *c.value.value);
        EXPECT_GE(c.high, *c.value.value);
        // The host's processor, which others may share, is part of a launch alone: its samples spread from 3.8 to 4.6
        // us.
        EXPECT_LT(c.high - c.low, (kind.name == "launch" ? 0.5 : 0.15) * *c.value.value);
    }
}

TEST_F(Ceilings, OfMemoryFallWithTheDistance) {
    EXPECT_GT(value("l1_read"), value("l2_read"));
    EXPECT_GT(value("shared_read"), value("l2_read"));
    EXPECT_GT(value("l2_read"), value("dram_read"));
    for (const char* stream : {"dram_write", "dram_copy", "dram_triad"}) {
        EXPECT_GT(value(stream), 0.7 * value("dram_read")) << stream;
        EXPECT_LT(value(stream), 1.3 * value("dram_read")) << stream;
    }
    // A load unit moves at most 128 bytes a cycle.
    for (const auto& [near, least] : {std::pair{"l1_read", 0.5}, {"shared_read", 0.8}}) {
        ASSERT_GT(ceiling(near).clock_mhz, 0) << near;
        const double most = 128e-9 * gpu_.multiprocessors * ceiling(near).clock_mhz * 1e6;
        EXPECT_LT(value(near), 1.02 * most) << near;
        EXPECT_GT(value(near), least * most) << near;
    }
}

/// Each of two partitions holds half of L2: what is larger is read from the other one, or not kept at all.
TEST_F(Ceilings, OfFarL2AreBetweenThoseOfNearL2AndOfMemory) {
    EXPECT_LT(value("l2_far_read"), 1.05 * value("l2_read"));
    EXPECT_GT(value("l2_far_read"), value("dram_read")) << "the buffer stays in L2";
}

TEST_F(Ceilings, OfTensorCoresFallWithTheWidthOfTheInputs) {
    if (!no_tensor_roof(gpu_).empty()) GTEST_SKIP() << no_tensor_roof(gpu_);
    EXPECT_GT(value("fp16_tensor"), 1.5 * value("tf32_tensor"));
    EXPECT_NEAR(value("bf16_tensor"), value("fp16_tensor"), 0.1 * value("fp16_tensor"));
    EXPECT_GT(value("tf32_tensor"), value("fp32_plain"));
}

TEST_F(Ceilings, OfMmaSyncAreUnderThoseOfWgmma) {
    if (tensor_cores(gpu_).family != TensorFamily::wgmma) GTEST_SKIP() << "this GPU has no wgmma";
    for (const char* precision : {"fp16", "bf16", "tf32"}) {
        const double mma_sync = value(std::string(precision) + "_mma_sync"),
                     any = value(std::string(precision) + "_tensor");
        EXPECT_LT(mma_sync, 0.8 * any) << precision;
        EXPECT_GT(mma_sync, 0.5 * any) << precision;
    }
}

/// Units an SM: CUDA C++ Programming Guide, table of arithmetic throughput.
TEST_F(Ceilings, ReachThePeakOfTheUnitsAtTheMeasuredClock) {
    const double fp32_lanes = is(8, 0) ? 64 : 128;
    for (const auto& [name, lanes] : {std::pair{"special", 16}, {"load_store", 32}}) {
        ASSERT_GT(ceiling(name).clock_mhz, 0) << name;
        const double most = lanes / 32.0 * gpu_.multiprocessors * ceiling(name).clock_mhz * 1e-3;
        EXPECT_NEAR(value(name), most, 0.05 * most) << name;
    }
    ASSERT_GT(ceiling("fp32_plain").clock_mhz, 0);
    const double peak = tflop_per_s("fp32_plain", 2 * fp32_lanes);
    EXPECT_NEAR(value("fp32_plain"), peak, 0.1 * peak);
    if (!is(9, 0)) return;
    struct Unit {
        const char* ceiling;
        double flops_per_cycle;
    };
    for (const auto& [name, flops_per_cycle] : {Unit{"fp64_plain", 128},
                                                {"fp16_plain", 512},
                                                {"fp16_tensor", 4096},
                                                {"bf16_tensor", 4096},
                                                {"tf32_tensor", 2048},
                                                {"fp64_tensor", 256}}) {
        ASSERT_GT(ceiling(name).clock_mhz, 0) << name;
        const double most = tflop_per_s(name, flops_per_cycle);
        EXPECT_GT(value(name), 0.9 * most) << name;
        EXPECT_LT(value(name), 1.02 * most) << name;
    }
}

TEST_F(Ceilings, OfLatencyAreThoseOfADevice) {
    EXPECT_LT(value("graph_node"), value("launch"));
    EXPECT_GT(value("graph_node"), 0.2);
    EXPECT_LT(value("launch"), 50);
    EXPECT_GT(value("grid_barrier"), 0.3);
    EXPECT_LT(value("grid_barrier"), 5);
}

TEST_F(Ceilings, TakeAboutTheTimeThatTheyMayAndLeaveNoMemoryBehind) {
    EXPECT_LT(seconds_, 10);
    EXPECT_LT(kept_bytes_, std::int64_t{64} << 20);  // code that was loaded
}

}  // namespace
}  // namespace kbench
