// The report of a program that measured itself: a timeline, and of several runs the scaling chart.
#include "analysis/report/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"
#include "tests/analysis/example_scopes.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ScopesReport, OneRunIsATimeline) {
    expect_golden("scopes.txt", render_terminal(scopes_document({one_gpu()}), 100));
    expect_golden("scopes.md", render_markdown(scopes_document({one_gpu()})));
}

TEST(ScopesReport, SeveralRunsAreComparedFirst) {
    expect_golden("scopes_scaling.txt", render_terminal(scopes_document({one_gpu(), two_gpus()}), 120));
    expect_golden("scopes_scaling.json", scopes_json({one_gpu(), two_gpus()}));
}

TEST(ScopesReport, TheScalingChartStacksAverageAndMaximumBesideTheIteration) {
    const Chart chart = scaling_chart({one_gpu(), two_gpus()});
    const auto& bars = std::get<BarChart>(chart.data);
    EXPECT_TRUE(bars.is_stacked);
    EXPECT_THAT(bars.labels, ElementsAre("1 GPU: iteration", "1 GPU: scopes, average", "1 GPU: scopes, maximum",
                                         "2 GPUs on 2 hosts: iteration", "2 GPUs on 2 hosts: scopes, average",
                                         "2 GPUs on 2 hosts: scopes, maximum"));
    const auto series = [&](const std::string& name) {
        const auto found = std::ranges::find(bars.series, name, &ChartSeries::name);
        EXPECT_NE(found, bars.series.end()) << name;
        return found->values;
    };
    EXPECT_DOUBLE_EQ(series("whole iteration")[0], 10);
    EXPECT_DOUBLE_EQ(series("whole iteration")[3], 10.5 * 1.2);
    EXPECT_TRUE(std::isnan(series("whole iteration")[1]));
    EXPECT_DOUBLE_EQ(series("forward")[1], 3);
    EXPECT_DOUBLE_EQ(series("forward")[4], 3 * 1.15);
    EXPECT_DOUBLE_EQ(series("forward")[5], 3 * 1.2);
    EXPECT_TRUE(std::isnan(series("exchange")[1]));
    EXPECT_DOUBLE_EQ(series("exchange")[4], (0.75 + 0.5) / 2);
    EXPECT_DOUBLE_EQ(series("exchange")[5], 0.75);
    EXPECT_EQ(std::ranges::count(bars.series, "attention", &ChartSeries::name), 0) << "it lies within forward";
}

TEST(ScopesReport, ALabelHasOneColourAndPlaceInAllCharts) {
    const auto scaling = std::get<BarChart>(scaling_chart({one_gpu(), two_gpus()}).data);
    std::vector<std::string> stacked;
    for (const ChartSeries& series : scaling.series) stacked.push_back(series.name);
    EXPECT_THAT(stacked, ElementsAre("whole iteration", "copy", "forward", "layer", "exchange", "update"));
    EXPECT_TRUE(scaling.series[0].is_faint) << "it takes no colour from the labels";
    const auto document = document_json(scopes_document({one_gpu(), two_gpus()}));
    for (const std::size_t run : {1, 2}) {
        const auto& blocks = document["sections"][run]["blocks"];
        const auto timeline = std::ranges::find(blocks, "timeline",
                                                [](const auto& block) { return block.value("chart", std::string()); });
        ASSERT_NE(timeline, blocks.end());
        std::vector<std::string> names = (*timeline)["names"];
        EXPECT_EQ(names.back(), "attention") << "the scaling chart leaves it out";
        names.pop_back();
        names.insert(names.begin(), "whole iteration");
        EXPECT_EQ(names, stacked);
        const auto& bars = (*timeline)["bars"];
        for (std::size_t i = 0; i < bars["name"].size(); ++i) {
            const std::string hover = bars["hover"][i], name = (*timeline)["names"][bars["name"][i].get<std::size_t>()];
            EXPECT_EQ(hover.substr(0, name.size()), name);
        }
    }
}

TEST(ScopesReport, RunsOfAsManyGpusAreToldByName) {
    const std::string text = render_terminal(scopes_document({one_gpu(), one_gpu()}), 120);
    EXPECT_THAT(text, HasSubstr("on one: 1 GPU and"));
}

TEST(ScopesReport, ThePageDrawsTimelineAndScaling) {
    const std::string page = document_json(scopes_document({one_gpu(), two_gpus()})).dump();
    EXPECT_THAT(page, HasSubstr("\"Scopes of an iteration\""));
    EXPECT_THAT(page, HasSubstr("GPU 0, stream 0, within (1)"));
    EXPECT_THAT(page, HasSubstr("\"Scaling\""));
}

TEST(ScopesReport, WhatWasNotMeasuredIsSaid) {
    ScopeRun run = one_gpu();
    run.processes[0].is_complete = false;
    run.processes[0].devices[0].notes = {"'a\x1b' never ended"};
    run.processes[0].devices[0].streams.clear();
    run.processes[0].devices[0].iteration = {};
    const std::string text = render_terminal(scopes_document({run}), 100);
    EXPECT_THAT(text, HasSubstr("An iteration takes unknown"));
    EXPECT_THAT(text, HasSubstr("no scope was measured"));
    EXPECT_THAT(text, HasSubstr("one/prof.json: the program ended before all was measured"));
    EXPECT_THAT(text, HasSubstr("GPU 0: 'a ' never ended"));
    EXPECT_NO_THROW(scaling_chart({run, run}));
}

}  // namespace
}  // namespace kbench
