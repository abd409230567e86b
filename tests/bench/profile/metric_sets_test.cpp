// The files of metric sets, without CUDA: what the parser accepts and refuses, and that the embedded files hold
// together.
#include "bench/profile/metric_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/base/error.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view small = R"(# a comment

core    time       ns    gpu__time_duration.sum  # duration
core    l1_bytes   byte  - no L1 here            # through L1
memory  moved      byte  a__read.sum + a__write.sum # both ways
memory  time       ns    gpu__time_duration.sum  # again
)";

std::string refusal(const std::string& text) {
    try {
        MetricSets::parse(text, "x.txt");
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

template <class Call>
std::string refusal_of(Call call) {
    try {
        call();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(MetricSets, FieldsOfALineArriveAsWritten) {
    const MetricSets sets = MetricSets::parse(small, "x.txt");
    ASSERT_EQ(sets.metrics().size(), 4U);
    const Metric& moved = sets.find("moved");
    EXPECT_EQ(moved.set, "memory");
    EXPECT_EQ(moved.unit, "byte");
    EXPECT_EQ(moved.what, "both ways");
    EXPECT_THAT(moved.counters, ElementsAre("a__read.sum", "a__write.sum"));
    EXPECT_TRUE(moved.available());
}

TEST(MetricSets, AMetricThatTheChipLacksKeepsItsReason) {
    const MetricSets sets = MetricSets::parse(small, "x.txt");
    EXPECT_FALSE(sets.find("l1_bytes").available());
    EXPECT_EQ(sets.find("l1_bytes").unavailable, "no L1 here");
}

TEST(MetricSets, SetsComeInTheOrderOfTheFileAndHoldTheirMetrics) {
    const MetricSets sets = MetricSets::parse(small, "x.txt");
    EXPECT_THAT(sets.sets(), ElementsAre("core", "memory"));
    ASSERT_EQ(sets.set("memory").size(), 2U);
    EXPECT_EQ(sets.set("memory")[1].name, "time");
}

TEST(MetricSets, ACounterOfSeveralSetsIsCollectedOnce) {
    const MetricSets sets = MetricSets::parse(small, "x.txt");
    EXPECT_THAT(counters_of(sets.metrics()), ElementsAre("gpu__time_duration.sum", "a__read.sum", "a__write.sum"));
}

TEST(MetricSets, LastLineNeedsNoLineFeedAndWindowsLineEndsDoNotCount) {
    const MetricSets sets = MetricSets::parse("core a b c # d\r\ncore e f g # h", "x.txt");
    ASSERT_EQ(sets.metrics().size(), 2U);
    EXPECT_EQ(sets.metrics()[0].what, "d");
    EXPECT_EQ(sets.metrics()[1].name, "e");
}

TEST(MetricSets, MistakesNameTheirLine) {
    EXPECT_THAT(refusal("\n# c\ncore time ns # what\n"), HasSubstr("x.txt:3: too few fields"));
    EXPECT_THAT(refusal("core time ns a.sum\n"), HasSubstr("x.txt:1: no '# what'"));
    EXPECT_THAT(refusal("core time ns a.sum #  \n"), HasSubstr("x.txt:1: no '# what'"));
    EXPECT_THAT(refusal("core time ns - # what\n"), HasSubstr("x.txt:1: '-' needs the reason"));
    EXPECT_THAT(refusal("core time ns a.sum + # what\n"), HasSubstr("x.txt:1: a counter's name is missing"));
    EXPECT_THAT(refusal("core time ns a.sum + + b.sum # what\n"), HasSubstr("a counter's name is missing"));
    EXPECT_THAT(refusal("core time ns a.sum b.sum # what\n"), HasSubstr("'b.sum' where"));
}

TEST(MetricSets, ANameMeansOneThing) {
    EXPECT_THAT(refusal("core t ns a # w\ncore t ns a # w\n"), HasSubstr("x.txt:2: set 'core' has metric 't' already"));
    EXPECT_THAT(refusal("core t ns a # w\nmore t ns b # w\n"),
                HasSubstr("x.txt:2: 't' must be what it is in set 'core'"));
    EXPECT_THAT(refusal("core t ns a # w\nmore t us a # w\n"), HasSubstr("x.txt:2: 't' must be"));
    EXPECT_THAT(refusal("core t ns a # w\nmore u ns a # w\ncore v ns a # w\n"),
                HasSubstr("x.txt:3: set 'core' goes on"));
}

TEST(MetricSets, UnknownNamesAreRefusedWithTheNearest) {
    const MetricSets& sets = metric_sets("GH100");
    EXPECT_THAT(refusal_of([&] { sets.set("memry"); }), HasSubstr("unknown metric set 'memry'; nearest: memory"));
    EXPECT_THAT(refusal_of([&] { sets.find("dram_bytes"); }), HasSubstr("dram_read_bytes"));
    EXPECT_THAT(refusal_of([&] { metric_sets("gh100"); }), HasSubstr("unknown chip 'gh100'; nearest: GH100"));
    EXPECT_THAT(refusal_of([&] { metric_sets("TU102"); }), HasSubstr("unknown chip 'TU102'"));
}

TEST(MetricSets, ChipsOfOneFamilyShareAFile) {
    EXPECT_EQ(&metric_sets("AD102"), &metric_sets("AD107"));
    EXPECT_EQ(&metric_sets("GB202"), &metric_sets("GB207"));
    EXPECT_NE(&metric_sets("GA100"), &metric_sets("GA102"));
}

TEST(MetricFiles, EveryFileIsEmbeddedAsItIs) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(KBENCH_SOURCE_DIR) + "/bench/profile/metrics")) {
        ++files;
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        const auto file = std::ranges::find(metric_files(), entry.path().filename().string(), &MetricFile::name);
        ASSERT_NE(file, metric_files().end()) << entry.path();
        EXPECT_EQ(file->text, text.str()) << entry.path();
    }
    EXPECT_EQ(files, metric_files().size());
}

/// Reports compare chips by name: a name that one file lacks, or whose unit differs, would go unnoticed there.
TEST(MetricFiles, AllHaveTheSameSetsNamesUnitsAndWords) {
    const auto reference = metric_sets("GH100").metrics();
    for (const std::string& chip : metric_chips()) {
        const auto metrics = metric_sets(chip).metrics();
        ASSERT_EQ(metrics.size(), reference.size()) << chip;
        for (std::size_t i = 0; i < metrics.size(); ++i) {
            EXPECT_EQ(metrics[i].set, reference[i].set) << chip << " " << metrics[i].name;
            EXPECT_EQ(metrics[i].name, reference[i].name) << chip;
            EXPECT_EQ(metrics[i].unit, reference[i].unit) << chip << " " << metrics[i].name;
            EXPECT_EQ(metrics[i].what, reference[i].what) << chip << " " << metrics[i].name;
        }
    }
}

TEST(MetricFiles, HaveTheSetsOfTheCommandLine) {
    EXPECT_THAT(metric_sets("GH100").sets(),
                ElementsAre("core", "tensor", "sass", "speed-of-light", "memory", "stalls"));
}

TEST(MetricFiles, TensorOperationsOfFp16AreAddedWhereTheChipCountsByAccumulator) {
    EXPECT_THAT(metric_sets("GH100").find("tensor_fp16_ops").counters, ElementsAre("sm__ops_path_tensor_src_fp16.sum"));
    EXPECT_THAT(metric_sets("GA100").find("tensor_fp16_ops").counters,
                ElementsAre("sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"));
    EXPECT_THAT(metric_sets("GA100").find("tensor_wgmma_inst").counters, IsEmpty());
}

}  // namespace
}  // namespace kbench
