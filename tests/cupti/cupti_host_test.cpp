// CUPTI's own word on the metric file: that every counter it names exists, and how many passes each set takes.
// CUPTI answers for any chip without a GPU, so this runs wherever the CUDA side is built.
#include "bench/profile/cuda/counted_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/explain/units.h"
#include "bench/profile/metric_sets.h"
#include "kbench/error.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class EveryChip : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cupti, EveryChip, testing::ValuesIn(metric_chips()),
                         [](const auto& chip) { return chip.param; });

TEST_P(EveryChip, HasEveryCounterThatTheFileNames) {
    const cuda::CuptiHost host(GetParam());
    for (const std::string& counter : counters_of(metric_sets(GetParam()).metrics()))
        EXPECT_TRUE(host.has(counter)) << counter;
}

TEST_P(EveryChip, CollectsCoreInOnePass) {
    EXPECT_EQ(cuda::plan_passes(GetParam(), counters_of(metric_sets(GetParam()).set("core"))).passes, 1U);
}

/// As CUPTI 13.0 plans them; another version may plan otherwise, and then these figures and those of the documentation
/// want a look.
TEST(CuptiPasses, AreThoseWeTellUsers) {
    using Passes = std::map<std::string, std::size_t>;
    const std::map<std::string, Passes> expected{
        {"GA100",
         {{"core", 1}, {"tensor", 4}, {"sass", 1}, {"speed-of-light", 9}, {"memory", 6}, {"stalls", 6}, {"pipes", 5}}},
        {"AD102",
         {{"core", 1}, {"tensor", 4}, {"sass", 1}, {"speed-of-light", 7}, {"memory", 6}, {"stalls", 7}, {"pipes", 3}}},
        {"GH100",
         {{"core", 1}, {"tensor", 5}, {"sass", 1}, {"speed-of-light", 9}, {"memory", 6}, {"stalls", 7}, {"pipes", 3}}},
        {"GB100",
         {{"core", 1}, {"tensor", 4}, {"sass", 1}, {"speed-of-light", 8}, {"memory", 6}, {"stalls", 7}, {"pipes", 3}}},
    };
    for (const auto& [chip, passes] : expected)
        for (const std::string& set : metric_sets(chip).sets())
            EXPECT_EQ(cuda::plan_passes(chip, counters_of(metric_sets(chip).set(set))).passes, passes.at(set))
                << chip << " " << set;
}

/// What a run counts by default: units come with the proof of the precision, without a pass more.
TEST(CuptiPasses, OfUnitsAreThoseOfTheProof) {
    std::vector<std::string> counters = counters_of(metric_sets("GH100").set("core"));
    const std::vector<std::string> proof = counters_of({&metric_sets("GH100").find("tensor_fp16_ops"), 1});
    counters.insert(counters.end(), proof.begin(), proof.end());
    EXPECT_EQ(cuda::plan_passes("GH100", counters).passes, 3U);
    std::vector<CounterOf> units(needed_units.begin(), needed_units.end());
    units.insert(units.end(), work_of_units.begin(), work_of_units.end());
    for (const CounterOf unit : units) {
        const std::vector<std::string> of_it = counters_of({&metric_sets("GH100").find(name_of(unit)), 1});
        counters.insert(counters.end(), of_it.begin(), of_it.end());
    }
    EXPECT_EQ(cuda::plan_passes("GH100", counters).passes, 3U);
}

/// Asking for all sets at once beats asking for one after the other.
TEST(CuptiPasses, OfAllSetsTogetherAreFewerThanTheirSum) {
    EXPECT_EQ(cuda::plan_passes("GH100", counters_of(metric_sets("GH100").metrics())).passes, 21U);
    EXPECT_EQ(cuda::plan_passes("GA100", counters_of(metric_sets("GA100").metrics())).passes, 16U);
}

TEST(CuptiPasses, APlanKeepsItsPromiseAndEveryCounter) {
    const std::vector<std::string> counters = counters_of(metric_sets("GH100").set("memory"));
    const cuda::PassPlan plan = cuda::plan_passes("GH100", counters);
    EXPECT_THAT(plan.counters, UnorderedElementsAreArray(counters));
    EXPECT_EQ(cuda::pass_count(cuda::CuptiHost("GH100").config_image(plan.counters)), plan.passes);
    EXPECT_LT(plan.passes, cuda::pass_count(cuda::CuptiHost("GH100").config_image(counters))) << "as written";
}

TEST(CuptiPasses, OfNothingAreNone) { EXPECT_EQ(cuda::plan_passes("GH100", {}).passes, 0U); }

TEST(CuptiHost, DoesNotHaveWhatOtherChipsHave) {
    const cuda::CuptiHost ampere("GA100"), hopper("GH100");
    EXPECT_TRUE(hopper.has("sm__inst_executed_pipe_tensor_op_gmma.sum"));
    EXPECT_FALSE(ampere.has("sm__inst_executed_pipe_tensor_op_gmma.sum"));
    EXPECT_FALSE(hopper.has("sm__ops_path_tensor_src_fp16_dst_fp32.sum"));
    EXPECT_FALSE(hopper.has("dram__bytes_read.nonsense"));
    EXPECT_FALSE(hopper.has(""));
}

/// A `-` in the file must be true: where a chip lacks a metric, none of the counters that the other chips read it from
/// may exist.
TEST(CuptiHost, LacksWhatTheFileSaysItLacks) {
    std::map<std::string, std::set<std::string>> counters;  // by metric, of all chips
    for (const std::string& chip : metric_chips())
        for (const Metric& metric : metric_sets(chip).metrics())
            counters[metric.name].insert(metric.counters.begin(), metric.counters.end());
    for (const std::string& chip : metric_chips()) {
        const cuda::CuptiHost host(chip);
        for (const Metric& metric : metric_sets(chip).metrics())
            for (const std::string& counter : counters[metric.name])
                EXPECT_TRUE(metric.available() || !host.has(counter))
                    << chip << " has " << counter << ", but " << metric.name << " is '-'";
    }
}

TEST(CuptiHost, KnowsNoChipThatWeForgot) {
    // Older than sm_80, or without DRAM of their own.
    const std::set<std::string> left_out{"GV100", "GV11B", "TU102", "TU104", "TU106",
                                         "TU116", "TU117", "GA10B", "GB10B", "GB20B"};
    const std::vector<std::string> ours = metric_chips();
    for (const std::string& chip : cuda::supported_chips())
        EXPECT_TRUE(left_out.contains(chip) || std::ranges::find(ours, chip) != ours.end()) << chip;
    for (const std::string& chip : ours) EXPECT_THAT(cuda::supported_chips(), Contains(chip));
}

template <class Failure, class Call>
std::string failure_of(Call call) {
    try {
        call();
    } catch (const Failure& error) {
        return error.what();
    }
    return "accepted";
}

TEST(CuptiHost, FailuresCarryTheCallItsReasonAndTheChip) {
    const std::string line = failure_of<DeviceError>([] { cuda::CuptiHost host("NO100"); });
    EXPECT_THAT(line, HasSubstr("cuptiProfilerHostInitialize for chip 'NO100'"));
    EXPECT_THAT(line, HasSubstr("CUPTI_ERROR_"));
}

TEST(CuptiCheck, KnownObstaclesComeWithTheirFix) {
    const auto line = [](CUptiResult status) {
        return failure_of<DeviceError>([status] { cuda::check(status, "cuptiCall", "dir/file.cpp", 7); });
    };
    EXPECT_THAT(line(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), HasSubstr("ERR_NVGPUCTRPERM"));
    EXPECT_THAT(line(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
    EXPECT_THAT(line(CUPTI_ERROR_HARDWARE_BUSY), HasSubstr("another profiler"));
    EXPECT_THAT(line(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED), HasSubstr("virtual GPU"));
    EXPECT_THAT(line(CUPTI_ERROR_INVALID_KIND), HasSubstr("cuptiCall failed at file.cpp:7: CUPTI_ERROR_INVALID_KIND"));
    EXPECT_EQ(line(CUPTI_SUCCESS), "accepted");
}

TEST(CuptiHost, UnknownCountersAreRefusedWithTheNearest) {
    const cuda::CuptiHost host("GH100");
    const auto refusal = [&host](const char* counter) {
        return failure_of<UsageError>([&] { cuda::require_counter(host, counter); });
    };
    EXPECT_THAT(refusal("dram__byte_read.sum"),
                HasSubstr("GH100 has no counter 'dram__byte_read.sum'; did you mean dram__bytes_read?"));
    EXPECT_THAT(refusal("dram__bytes_read.sun"), HasSubstr("did you mean dram__bytes_read.sum?"));
    EXPECT_EQ(refusal("dram__bytes_read.sum"), "accepted");
    EXPECT_THROW(cuda::plan_passes("GH100", {"sm__nonsense.sum"}), UsageError);
}

}  // namespace
}  // namespace kbench
