// report.html: its data say what the result says, nothing in a result can leave them, and nothing is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::Not;
using Json = nlohmann::ordered_json;

constexpr std::string_view hostile = "</script><img src=x onerror=alert(1)><b>&\"'\u2028{{data}}";

Result example_with_counters() {
    Result result = example::profiled_result();
    for (Point& point : result.points)
        for (StepResult& step : point.steps)
            if (!step.kernels.empty()) step.counters = {{"dram_read_bytes", 1e6}, {"dram_write_bytes", 1e6}};
    return result;
}

std::size_t count(const std::string& text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

/// Not a matcher: a failure would print the page, which is five megabytes.
bool has(const std::string& page, std::string_view what) { return page.find(what) != std::string::npos; }

/// The section of that id, wherever it stands; null where there is none.
Json section(const Json& sections, const std::string& id) {
    for (const Json& one : sections["sections"]) {
        if (one["id"] == id) return one;
        if (Json below = section(one, id); !below.is_null()) return below;
    }
    return nullptr;
}

/// The first chart of that kind.
Json chart(const Json& section, const std::string& kind) {
    for (const Json& block : section["blocks"])
        if (block.value("chart", "") == kind) return block;
    return nullptr;
}

/// A cell by the header of its column.
std::string cell(const Json& table, std::size_t row, const std::string& header) {
    for (std::size_t i = 0; i < table["columns"].size(); ++i)
        if (table["columns"][i]["header"] == header) return table["rows"][row][i].get<std::string>();
    ADD_FAILURE() << "no column " << header;
    return "";
}

/// The page of the first point alone.
Json first_point(Result result) {
    result.points.resize(1);
    return page_document(write_html(result));
}

TEST(Html, ChoosesAmongThePointsOfASweep) {
    const Result result = example_with_counters();
    const Json data = page_document(write_html(result));
    const auto found = std::ranges::find_if(
        data["sections"], [](const Json& section) { return section.value("choice", "") == "Point of the sweep"; });
    ASSERT_NE(found, data["sections"].end());
    const Json& points = (*found)["sections"];
    ASSERT_EQ(points.size(), result.points.size());
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        EXPECT_THAT(points[i]["title"].get<std::string>(), testing::HasSubstr(result.points[i].model()));
        if (result.points[i].status == PointStatus::done)
            EXPECT_EQ(section(points[i], "steps")["blocks"][0]["rows"].size(), result.points[i].steps.size());
        else
            EXPECT_THAT(points[i]["blocks"][0]["text"].get<std::string>(), testing::HasSubstr(result.points[i].reason));
    }
    EXPECT_EQ(section(data, "ceilings")["blocks"][1]["rows"].size(), result.ceilings.ceilings.size());
    EXPECT_EQ(section(data, "warnings")["blocks"][0]["items"], Json(result.warnings));
}

TEST(Html, PartsOfTheExplanationFindTheirSteps) {
    const Result result = example_with_counters();
    const Explanation explanation = explain(result, result.points[0]);
    const Json data = first_point(result);
    const Json steps = section(data, "steps")["blocks"][0];
    const std::size_t count = result.points[0].steps.size();
    for (std::size_t i = 0; i < explanation.roof_times.size(); ++i) {
        const StepRoofTimes& step = explanation.roof_times[i];
        const double share = step.binding_share(explanation.facts.steps[i].time_us);
        EXPECT_EQ(steps["keys"][i], i);
        ASSERT_NE(step.binding(), nullptr);
        EXPECT_TRUE(cell(steps, i, "roof times").starts_with(step.binding()->name()));
        EXPECT_NEAR(std::stod(cell(steps, i, "of roof %")), 100 * share, 0.051);
        EXPECT_TRUE(cell(steps, i, "verdict").starts_with(name(explanation.verdicts.steps[i].bound)));
    }
    const Json roofline = chart(section(data, "roofline"), "roofline"), &marks = roofline["marks"];
    ASSERT_FALSE(marks["x"].empty());
    for (std::size_t i = 0; i < marks["x"].size(); ++i) {
        EXPECT_EQ(marks["key"][i].is_null(), roofline["views"][roofline["view"][i].get<std::size_t>()] != "steps");
        const Json& key = marks["key"][i];
        EXPECT_TRUE(key.is_null() || key.get<std::size_t>() < count);
    }
    double sum_ms = 0;
    const Json bars = chart(section(data, "time-breakdown"), "stacked");
    for (const Json& line : bars["series"]) sum_ms += line["values"][0].get<double>();
    EXPECT_NEAR(sum_ms, explanation.breakdown.end_to_end_us * 1e-3, 1e-4);
}

TEST(Html, MarksNameTheirStepByItsPlaceWhateverItsNumber) {
    Result result = example_with_counters();
    for (StepResult& step : result.points[0].steps) step.index += 100;
    const Json marks = chart(section(first_point(result), "roofline"), "roofline")["marks"];
    std::size_t first = 0;
    while (marks["key"][first].is_null()) ++first;
    EXPECT_EQ(marks["key"][first], 0);
    EXPECT_TRUE(marks["hover"][first].get<std::string>().starts_with("100 "));
    EXPECT_EQ(marks["label"][first], result.points[0].steps[0].layer);
}

TEST(Html, KernelsFollowOneAnother) {
    const Result result = example_with_counters();
    const Json bars = chart(section(first_point(result), "timeline"), "timeline")["bars"];
    const StepResult& first = result.points[0].steps[0];
    const KernelResult& second = result.points[0].steps[1].kernels[0];
    const double start_us = first.kernels[0].gap_us + first.kernels[0].time_us + second.gap_us;
    EXPECT_NEAR(bars["start"][1].get<double>(), start_us, 1e-4);
    EXPECT_NEAR(bars["length"][1].get<double>(), second.time_us, 1e-4);
}

TEST(Html, NothingInAResultLeavesItsBlock) {
    Result result = example_with_counters();
    const std::string quiet = write_html(result);
    const std::string text(hostile);
    result.warnings = {text};
    result.environment.command_line = result.environment.host.cpu = result.environment.gpu->name = text;
    result.ceilings.device = text;
    for (Point& point : result.points) {
        point.set("model", text);
        point.reason = text;
        for (StepResult& step : point.steps) {
            step.layer = step.op = step.implementation = step.provider = step.shape = text;
            step.absorbs = {text};
            for (KernelResult& kernel : step.kernels) kernel.name = kernel.short_name = kernel.occupancy_hint = text;
        }
    }
    const std::string page = write_html(result);
    EXPECT_FALSE(has(page, "<img"));
    EXPECT_EQ(count(page, "</script"), count(quiet, "</script")) << "no element ends early";
    EXPECT_EQ(count(page, "<script"), count(quiet, "<script"));
    EXPECT_TRUE(has(page, "<title>&lt;/script&gt;&lt;img src=x"));
    const Json data = page_document(page);
    EXPECT_EQ(section(data, "warnings")["blocks"][0]["items"][0], text) << "as text it is whole";
    EXPECT_EQ(cell(section(data, "steps")["blocks"][0], 0, "provider"), text);
}

TEST(Html, AnyTextComesBackFromAPage) {
    const Json document{{"name", std::string(hostile) + "\u2029é"}};
    const std::string data = packed(document);
    EXPECT_EQ(data.find_first_of("<>&\"'"), std::string::npos) << data;
    EXPECT_EQ(page_document("<script id=\"data\">" + data + "</script>"), document);
    EXPECT_EQ(page_document("<script id=\"data\">{\"name\": 1}</script>"), (Json{{"name", 1}})) << "older versions";
    EXPECT_TRUE(page_document("<p>another page</p>").is_null());
    EXPECT_TRUE(page_document("<script id=\"data\">alert(1)</script>").is_discarded());
}

TEST(Html, BytesThatAreNotUtf8AreReplaced) {
    Result result = example_with_counters();
    result.points[0].steps[0].layer = "h.\xff\xfe";
    EXPECT_EQ(cell(section(first_point(result), "steps")["blocks"][0], 0, "layer"), "h.\uFFFD\uFFFD");
}

TEST(Html, ALongSweepIsSmall) {
    const std::string page = write_html(example::long_result());
    const std::size_t plotly = page.find("plotly.js v"), after = page.find("</script>", plotly);
    ASSERT_LT(plotly, after);
    EXPECT_LE(page.size() - (after - plotly), 3'000'000u) << "18 points, without plotly.js";
}

TEST(Html, LoadsNothing) {
    const std::string page = write_html(example_with_counters());
    EXPECT_TRUE(has(page, "default-src 'none'"));
    const std::string own = page.substr(0, page.find("plotly.js v"));
    for (const char* loading : {"<link", "<img", "<iframe", "@import", " src=", "url("})
        EXPECT_FALSE(has(own, loading)) << loading;
    EXPECT_TRUE(has(page, "Licensed under the MIT license")) << "plotly.js keeps its notice";
}

TEST(Html, ShowsNoIntervalOfTooFewSamples) {
    Result result = example::profiled_result();
    result.points.resize(1);
    result.points[0].end_to_end->latency = example::timing(40, 9);
    EXPECT_EQ(count(first_point(result).dump(), "too few for an interval"), 1u);
    result.points[0].end_to_end->latency = example::timing(40, 12);
    EXPECT_EQ(count(first_point(result).dump(), "too few for an interval"), 0u);
}

TEST(Html, WhatIsMissingHasItsReason) {
    Result result = example::result();  // no ceilings, kernels or counters
    result.points[0].activity.unavailable = "no records here";
    const Json data = first_point(result);
    for (const char* id : {"ceilings", "roofline", "layers-by-metric", "timeline"}) {
        const Json found = section(data, id);
        ASSERT_FALSE(found.is_null()) << id;
        EXPECT_EQ(found["blocks"][0]["tone"], "missing") << id;
        EXPECT_THAT(found["blocks"][0]["text"].get<std::string>(), Not("")) << id;
    }
    const Json timeline = section(data, "timeline");
    EXPECT_THAT(timeline["blocks"][0]["text"].get<std::string>(), testing::HasSubstr("no records here"));
    EXPECT_FALSE(chart(timeline, "timeline")["bars"]["start"].empty()) << "steps stand in for kernels";
}

TEST(Html, AResultWithoutPointsIsAPageToo) {
    EXPECT_FALSE(section(page_document(write_html(Result{})), "environment").is_null());
}

TEST(Html, NumbersThatAreNotFiniteAreNull) {
    Result result = example_with_counters();
    result.points.resize(1);
    std::vector<Explanation> explanations{explain(result, result.points[0])};
    explanations[0].attribution.roles.at(0).dram_ms = std::numeric_limits<double>::quiet_NaN();
    const Json data = page_document(write_html({result, explanations}));
    EXPECT_TRUE(section(data, "which-bytes-cost-which-milliseconds")["blocks"][2]["series"][0]["values"][0].is_null());
}

TEST(Html, EveryPointNeedsItsExplanation) { EXPECT_THROW(write_html({example::result(), {}}), std::invalid_argument); }

TEST(Html, IsTheSameForTheSameResult) {
    EXPECT_EQ(write_html(example_with_counters()), write_html(example_with_counters()));
}

// ---- a section is a function and a row: it needs no more to be shown everywhere

Section answer_to_everything(const SectionContext& context) {
    Section section{"The answer to everything"};
    section.add(Paragraph{context.point().model() + " takes 42"});
    section.add(Chart{"Answers", "", BarChart{"", {"everything"}, {{"answer", {42}}}}});
    return section;
}

TEST(SectionTable, ARowIsShownByEveryRenderer) {
    const Result result = example_with_counters();
    const ExplainedResult explained(result);
    std::vector<SectionKind> kinds(section_kinds().begin(), section_kinds().end());
    kinds.push_back({"everything", Of::point, StandsIn::both, answer_to_everything});
    const std::string told = result.points[0].model() + " takes 42";
    EXPECT_THAT(render_terminal(summary_of(explained, kinds), 100), testing::HasSubstr(told));
    const std::string markdown = render_markdown(report_of(explained, kinds));
    EXPECT_THAT(markdown, testing::HasSubstr("### The answer to everything"));
    EXPECT_THAT(markdown, testing::HasSubstr(told));
    const Json found = section(document_json(report_of(explained, kinds)), "the-answer-to-everything");
    EXPECT_EQ(found["blocks"][0]["text"], told);
    EXPECT_EQ(chart(found, "bars")["series"][0]["values"][0], 42);
    EXPECT_EQ(section(page_document(render_html(report_of(explained, kinds))), "the-answer-to-everything"), found);
}

TEST(SectionTable, EveryRowHasANameThatItIsFoundBy) {
    const Result result = example_with_counters();
    const ExplainedResult explained(result);
    for (const SectionKind& kind : section_kinds())
        EXPECT_NO_THROW(section_called(kind.name, {explained})) << kind.name;
    EXPECT_THROW(section_called("no such section", {explained}), std::out_of_range);
}

}  // namespace
}  // namespace kbench
