// From what a command line asks for to a chip's counters, and from their values to metrics.
#include "bench/profile/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kbench/error.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const MetricSets& sets() {
    static const MetricTable parsed = MetricTable::parse(
        "chips A\n"
        "core dram_read byte dram__bytes_read.sum # read\n"
        "core newer op - a newer chip's # none here\n"
        "tensor flow inst a__x.sum + b__y.sum # two\n"
        "tensor dram_read byte dram__bytes_read.sum # read\n",
        "test");
    return parsed.of("A");
}

std::vector<std::string> names(const CounterRequest& request) {
    std::vector<std::string> found;
    for (const Metric& metric : requested_metrics(sets(), request)) found.push_back(metric.name);
    return found;
}

std::string refusal(const CounterRequest& request) {
    try {
        requested_metrics(sets(), request);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(RequestedMetrics, TakesSetsOnceAndInOrder) {
    EXPECT_THAT(names({{"core"}, {}, false}), ElementsAre("dram_read", "newer"));
    EXPECT_THAT(names({{"tensor", "core"}, {}, false}), ElementsAre("flow", "dram_read", "newer"));
    EXPECT_EQ(names({{"full"}, {}, false}), names({{"core", "tensor"}, {}, false}));
    EXPECT_THAT(names({{}, {}, false}), ElementsAre());
}

TEST(RequestedMetrics, SamplesAreNoCounters) {
    const CounterRequest request{{"samples", "core"}, {}, false};
    EXPECT_EQ(names(request), names({{"core"}, {}, false}));
    EXPECT_TRUE(request.samples());
    EXPECT_FALSE(request.nothing());
    EXPECT_FALSE((CounterRequest{{"full"}, {}, false}).samples());
}

TEST(RequestedMetrics, TakesSingleOnesByKbenchsNameAndTheChips) {
    EXPECT_THAT(names({{"core"}, {"flow", "lts__t_bytes.sum"}, true}),
                ElementsAre("dram_read", "newer", "flow", "lts__t_bytes.sum"));
}

TEST(RequestedMetrics, RefusesOthersWithTheNearest) {
    EXPECT_THAT(refusal({{"cores"}, {}, true}), HasSubstr("unknown metric set 'cores'; did you mean core?"));
    EXPECT_THAT(refusal({{}, {"dram_raed"}, true}), HasSubstr("unknown metric 'dram_raed'; did you mean dram_read"));
}

TEST(MetricValues, AddsCountersAndLeavesOutWhatHasNoValue) {
    const std::vector<Metric> metrics = requested_metrics(sets(), {{"full"}, {"z__z.sum"}, true});
    const std::vector<std::string> counters{"a__x.sum", "b__y.sum", "dram__bytes_read.sum", "z__z.sum"};
    EXPECT_THAT(metric_values(metrics, counters, std::vector{1.0, 2.0, 64.0, std::nan("")}),
                ElementsAre(Pair("dram_read", 64), Pair("flow", 3)));
    EXPECT_THAT(metric_values(metrics, counters, std::vector{1.0, std::nan(""), 64.0, 5.0}),
                ElementsAre(Pair("dram_read", 64), Pair("z__z.sum", 5)));
}

TEST(DescribeMetrics, SaysWhereTheyComeFromAndWhatIsMissing) {
    const auto described = describe_metrics(requested_metrics(sets(), {{"full"}, {}, true}));
    ASSERT_EQ(described.size(), 3u);
    EXPECT_EQ(described[1].origin, Origin::unavailable);
    EXPECT_EQ(described[1].reason, "a newer chip's");
    EXPECT_EQ(described[2].source, "a__x.sum + b__y.sum");
    EXPECT_EQ(described[2].origin, Origin::measured);
}

}  // namespace
}  // namespace kbench
