// The metric file, without CUDA: what the parser accepts and refuses, and what the embedded file says of the chips.
#include "bench/profile/metric_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kbench/error.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view small = R"(# a comment
chips AA100 AA101  # some product
chips BB100
chips CC100 CC102

core    time       ns    gpu__time_duration.sum  # duration
core    l1_bytes   byte  - no L1 here            # through L1
memory  moved      byte  a__read.sum + a__write.sum # both ways
    @CC100,BB100         - moves nothing
memory  time       ns    gpu__time_duration.sum  # again
memory  worked     %     - AA100 never works     # busy
    @BB100               b__busy.pct
    @CC100               c__busy.pct + c__rest.pct
)";

MetricSets sets_of(std::string_view text, std::string_view chip = "AA100") {
    return MetricTable::parse(text, "x.txt").of(chip);
}

/// What is said of `text` behind two lines that name chips.
std::string refusal(const std::string& text) {
    try {
        MetricTable::parse("chips A B\nchips C\n" + text, "x.txt");
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
    const MetricSets sets = sets_of(small);
    ASSERT_EQ(sets.metrics().size(), 5U);
    const Metric& moved = sets.find("moved");
    EXPECT_EQ(moved.set, "memory");
    EXPECT_EQ(moved.unit, "byte");
    EXPECT_EQ(moved.what, "both ways");
    EXPECT_THAT(moved.counters, ElementsAre("a__read.sum", "a__write.sum"));
    EXPECT_TRUE(moved.available());
}

TEST(MetricSets, AMetricThatTheChipLacksKeepsItsReason) {
    const MetricSets sets = sets_of(small);
    EXPECT_FALSE(sets.find("l1_bytes").available());
    EXPECT_EQ(sets.find("l1_bytes").unavailable, "no L1 here");
}

TEST(MetricSets, AChipHasTheRowsMetricUnlessItsFamilyDiffers) {
    EXPECT_THAT(sets_of(small, "AA101").find("moved").counters, ElementsAre("a__read.sum", "a__write.sum"));
    for (const char* chip : {"BB100", "CC100", "CC102"}) {
        const Metric moved = sets_of(small, chip).find("moved");
        EXPECT_THAT(moved.counters, IsEmpty()) << chip;
        EXPECT_EQ(moved.unavailable, "moves nothing") << chip;
        EXPECT_EQ(moved.what, "both ways") << chip;
        EXPECT_EQ(moved.unit, "byte") << chip;
    }
}

TEST(MetricSets, AChipMayHaveWhatTheRowLacks) {
    EXPECT_EQ(sets_of(small, "AA100").find("worked").unavailable, "AA100 never works");
    const Metric worked = sets_of(small, "CC102").find("worked");
    EXPECT_THAT(worked.counters, ElementsAre("c__busy.pct", "c__rest.pct"));
    EXPECT_EQ(worked.unavailable, "");
    EXPECT_THAT(sets_of(small, "BB100").find("worked").counters, ElementsAre("b__busy.pct"));
}

TEST(MetricSets, SetsComeInTheOrderOfTheFileAndHoldTheirMetrics) {
    const MetricSets sets = sets_of(small);
    EXPECT_THAT(sets.sets(), ElementsAre("core", "memory"));
    ASSERT_EQ(sets.set("memory").size(), 3U);
    EXPECT_EQ(sets.set("memory")[1].name, "time");
}

TEST(MetricSets, ACounterOfSeveralSetsIsCollectedOnce) {
    const MetricSets sets = sets_of(small);
    EXPECT_THAT(counters_of(sets.metrics()), ElementsAre("gpu__time_duration.sum", "a__read.sum", "a__write.sum"));
}

TEST(MetricSets, LastLineNeedsNoLineFeedAndWindowsLineEndsDoNotCount) {
    const MetricSets sets = sets_of("chips AA100\r\ncore a b c # d\r\ncore e f g # h");
    ASSERT_EQ(sets.metrics().size(), 2U);
    EXPECT_EQ(sets.metrics()[0].what, "d");
    EXPECT_EQ(sets.metrics()[1].name, "e");
}

TEST(MetricSets, MistakesNameTheirLine) {
    EXPECT_THAT(refusal("\n# c\ncore time ns # what\n"), HasSubstr("x.txt:5: too few fields"));
    EXPECT_THAT(refusal("core time ns a.sum\n"), HasSubstr("x.txt:3: no '# what'"));
    EXPECT_THAT(refusal("core time ns a.sum #  \n"), HasSubstr("x.txt:3: no '# what'"));
    EXPECT_THAT(refusal("core time ns - # what\n"), HasSubstr("x.txt:3: '-' needs the reason"));
    EXPECT_THAT(refusal("core time ns a.sum + # what\n"), HasSubstr("x.txt:3: a counter's name is missing"));
    EXPECT_THAT(refusal("core time ns a.sum + + b.sum # what\n"), HasSubstr("a counter's name is missing"));
    EXPECT_THAT(refusal("core time ns a.sum b.sum # what\n"), HasSubstr("'b.sum' where"));
}

TEST(MetricSets, ANameMeansOneThing) {
    EXPECT_THAT(refusal("core t ns a # w\ncore t ns a # w\n"), HasSubstr("x.txt:4: set 'core' has metric 't' already"));
    EXPECT_THAT(refusal("core t ns a # w\nmore t ns b # w\n"),
                HasSubstr("x.txt:4: 't' must be what it is in set 'core'"));
    EXPECT_THAT(refusal("core t ns a # w\nmore t us a # w\n"), HasSubstr("x.txt:4: 't' must be"));
    EXPECT_THAT(refusal("core t ns a # w\nmore u ns a # w\ncore v ns a # w\n"),
                HasSubstr("x.txt:5: set 'core' goes on"));
}

TEST(MetricSets, MistakesInAChipsDifferenceNameTheirLine) {
    EXPECT_THAT(refusal("@A a.sum\n"), HasSubstr("x.txt:3: '@' without a metric above it"));
    EXPECT_THAT(refusal("core t ns a # w\n@\n"), HasSubstr("x.txt:4: a counter's name is missing"));
    EXPECT_THAT(refusal("core t ns a # w\n@A\n"), HasSubstr("x.txt:4: a counter's name is missing"));
    EXPECT_THAT(refusal("core t ns a # w\n@A -\n"), HasSubstr("x.txt:4: '-' needs the reason"));
    EXPECT_THAT(refusal("core t ns a # w\n@A b c\n"), HasSubstr("x.txt:4: 'c' where"));
    EXPECT_THAT(refusal("core t ns a # w\n@A b # w\n"), HasSubstr("x.txt:4: a '#' behind '@CHIP'"));
    EXPECT_THAT(refusal("core t ns a # w\n@D b\n"),
                HasSubstr("x.txt:4: unknown family of chips 'D'; must be one of A, C"));
    EXPECT_THAT(refusal("core t ns a # w\n@B b\n"), HasSubstr("x.txt:4: unknown family of chips 'B'"));
    EXPECT_THAT(refusal("core t ns a # w\n@A, b\n"), HasSubstr("x.txt:4: unknown family of chips ''"));
    EXPECT_THAT(refusal("core t ns a # w\n@A,C b\n@C c\n"), HasSubstr("x.txt:5: 'C' has its 't' already"));
    EXPECT_THAT(refusal("core t ns a # w\n@A a\n"), HasSubstr("x.txt:4: this is what the row of 't' says"));
}

TEST(MetricSets, AChipIsNamedOnce) {
    EXPECT_THAT(refusal("chips D B\n"), HasSubstr("x.txt:3: chip 'B' is named already"));
    EXPECT_THAT(refusal("chips D D\n"), HasSubstr("x.txt:3: chip 'D' is named already"));
    EXPECT_THAT(refusal("chips # none\n"), HasSubstr("x.txt:3: 'chips' without a chip"));
    EXPECT_EQ(refusal("chips D E\n"), "accepted");
}

TEST(MetricSets, ANameMeansOneThingOnEveryChip) {
    EXPECT_THAT(refusal("core t ns a # w\n@C b\nmore t ns a # w\n"),
                HasSubstr("x.txt:5: 't' must be what it is in set 'core'"));
    EXPECT_EQ(refusal("core t ns a # w\n@C b\nmore t ns a # again\n@C b\n"), "accepted");
}

TEST(MetricSets, UnknownNamesAreRefusedWithTheNearest) {
    const MetricSets& sets = metric_sets("GH100");
    EXPECT_THAT(refusal_of([&] { sets.set("memry"); }), HasSubstr("unknown metric set 'memry'; did you mean memory?"));
    EXPECT_THAT(refusal_of([&] { sets.find("dram_bytes"); }), HasSubstr("dram_read_bytes"));
    EXPECT_THAT(refusal_of([&] { metric_sets("gh100"); }), HasSubstr("unknown chip 'gh100'; did you mean GH100?"));
    EXPECT_THAT(refusal_of([&] { metric_sets("TU102"); }), HasSubstr("unknown chip 'TU102'"));
}

TEST(MetricSets, ChipsOfOneFamilyShareTheirs) {
    EXPECT_EQ(&metric_sets("AD102"), &metric_sets("AD107"));
    EXPECT_EQ(&metric_sets("GB202"), &metric_sets("GB207"));
    EXPECT_NE(&metric_sets("GA100"), &metric_sets("GA102"));
}

TEST(MetricFile, IsEmbeddedAsItIs) {
    std::stringstream text;
    text << std::ifstream(std::string(KBENCH_SOURCE_DIR) + "/bench/profile/metrics.txt").rdbuf();
    ASSERT_EQ(metric_files().size(), 1U);
    EXPECT_EQ(metric_files().front().text, text.str());
}

TEST(MetricFile, KnowsTheChipsThatWePromise) {
    EXPECT_THAT(metric_chips(),
                ElementsAre("GA100", "GA102", "GA103", "GA104", "GA106", "GA107", "AD102", "AD103", "AD104", "AD106",
                            "AD107", "GH100", "GB100", "GB102", "GB110", "GB202", "GB203", "GB205", "GB206", "GB207"));
}

TEST(MetricFile, HasTheSetsOfTheCommandLine) {
    EXPECT_THAT(metric_sets("GH100").sets(),
                ElementsAre("core", "tensor", "sass", "speed-of-light", "memory", "stalls", "pipes"));
}

TEST(MetricFile, TensorOperationsOfFp16AreAddedWhereTheChipCountsByAccumulator) {
    EXPECT_THAT(metric_sets("GH100").find("tensor_fp16_ops").counters, ElementsAre("sm__ops_path_tensor_src_fp16.sum"));
    EXPECT_THAT(metric_sets("GA100").find("tensor_fp16_ops").counters,
                ElementsAre("sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"));
    EXPECT_THAT(metric_sets("GA100").find("tensor_wgmma_inst").counters, IsEmpty());
    EXPECT_THAT(metric_sets("GH100").find("tensor_wgmma_inst").counters,
                ElementsAre("sm__inst_executed_pipe_tensor_op_gmma.sum"));
}

}  // namespace
}  // namespace kbench
