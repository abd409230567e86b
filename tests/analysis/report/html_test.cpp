// report.html: the data block says what the result says, nothing in a result can leave it, and nothing is loaded.
#include "analysis/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

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

Json data_of(const std::string& page) {
    const std::string begin = R"(<script type="application/json" id="data">)";
    const std::size_t at = page.find(begin);
    EXPECT_NE(at, std::string::npos);
    const std::size_t from = at + begin.size();
    return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

std::size_t count(const std::string& text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

/// Not a matcher: a failure would print the page, which is five megabytes.
bool has(const std::string& page, std::string_view what) { return page.find(what) != std::string::npos; }

/// A cell by the name of its column.
Json cell(const Json& table, std::size_t row, const std::string& column) {
    for (std::size_t i = 0; i < table["columns"].size(); ++i)
        if (table["columns"][i]["name"] == column) return table["rows"][row][i];
    ADD_FAILURE() << "no column " << column;
    return nullptr;
}

TEST(Html, DataSayWhatTheResultSays) {
    const Result result = example_with_counters();
    const Json data = data_of(write_html(result));
    ASSERT_EQ(data["points"].size(), result.points.size());
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point& point = result.points[i];
        const Json& shown = data["points"][i];
        EXPECT_EQ(shown["axes"]["model"], point.model());
        EXPECT_EQ(shown["axes"]["seq"], point.seq().value());
        EXPECT_EQ(shown["status"], name(point.status));
        EXPECT_EQ(shown["reason"], point.reason);
        EXPECT_EQ(shown["steps"].size(), point.steps.size());
        EXPECT_EQ(shown["step_table"]["rows"].size(), point.steps.size());
        EXPECT_FALSE(shown["answer"].empty());
    }
    EXPECT_EQ(data["ceilings"]["blocks"][1]["rows"].size(), result.ceilings.ceilings.size());
    EXPECT_EQ(data["lines"].size(), line_count);
    EXPECT_EQ(data["warnings"], Json(result.warnings));
}

TEST(Html, PartsOfTheExplanationFindTheirSteps) {
    const Result result = example_with_counters();
    const Explanation explanation = explain(result, result.points[0]);
    const Json point = data_of(write_html(result))["points"][0];
    ASSERT_EQ(point["ledger"]["steps"].size(), explanation.ledger.steps.size());
    for (std::size_t i = 0; i < explanation.ledger.steps.size(); ++i) {
        const StepLedger& step = explanation.ledger.steps[i];
        EXPECT_EQ(point["ledger"]["steps"][i]["step"], i);
        ASSERT_NE(step.binding(), nullptr);
        EXPECT_EQ(cell(point["step_table"], i, "binding roof"), step.binding()->roof.ceiling);
        EXPECT_NEAR(cell(point["step_table"], i, "of roof %").get<double>(), 100 * step.roof_share(), 1e-3);
        EXPECT_EQ(cell(point["step_table"], i, "verdict"), name(explanation.verdicts.steps[i].bound));
    }
    for (const Json& mark : point["roofline"]["steps"])
        EXPECT_LT(mark.back().get<std::size_t>(), result.points[0].steps.size());
    double sum_us = 0;
    for (const Json& line : point["ledger"]["total"]) sum_us += line.get<double>();
    EXPECT_NEAR(sum_us, point["ledger"]["end_to_end_us"].get<double>(), 0.01);
}

TEST(Html, MarksNameTheirStepByItsPlaceWhateverItsNumber) {
    Result result = example_with_counters();
    for (StepResult& step : result.points[0].steps) step.index += 100;
    const Json point = data_of(write_html(result))["points"][0];
    ASSERT_FALSE(point["roofline"]["steps"].empty());
    EXPECT_EQ(point["roofline"]["steps"][0].back(), 0);
    EXPECT_EQ(point["steps"][0]["index"], 100);
}

TEST(Html, KernelsFollowOneAnother) {
    const Result result = example_with_counters();
    const Json timeline = data_of(write_html(result))["points"][0]["timeline"];
    const StepResult& first = result.points[0].steps[0];
    const KernelResult& second = result.points[0].steps[1].kernels[0];
    EXPECT_TRUE(timeline["recorded"].get<bool>());
    const double start_us = first.kernels[0].gap_us + first.kernels[0].time_us + second.gap_us;
    EXPECT_NEAR(timeline["rows"][1][0].get<double>(), start_us, 1e-4);
    EXPECT_NEAR(timeline["rows"][1][1].get<double>(), second.time_us, 1e-4);
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
    const Json data = data_of(page);
    EXPECT_EQ(data["points"][0]["axes"]["model"], text) << "as text it is whole";
    EXPECT_EQ(data["points"][0]["steps"][0]["layer"], text);
}

TEST(Html, JsonForAScriptHasNoCharacterThatHtmlOrOldJavaScriptReads) {
    const std::string json = script_json({{"name", std::string(hostile) + "\u2029é"}});
    EXPECT_EQ(json.find_first_of("<>&"), std::string::npos) << json;
    EXPECT_THAT(json, testing::Each(testing::Lt('\x7f'))) << json;
    EXPECT_EQ(Json::parse(json)["name"], std::string(hostile) + "\u2029é");
}

TEST(Html, BytesThatAreNotUtf8AreReplaced) {
    Result result = example_with_counters();
    result.points[0].steps[0].layer = "h.\xff\xfe";
    EXPECT_EQ(data_of(write_html(result))["points"][0]["steps"][0]["layer"], "h.\uFFFD\uFFFD");
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
    EXPECT_EQ(count(write_html(result), "too few for an interval"), 1u);
    result.points[0].end_to_end->latency = example::timing(40, 12);
    EXPECT_EQ(count(write_html(result), "too few for an interval"), 0u);
}

TEST(Html, WhatIsMissingHasItsReason) {
    Result result = example::result();  // no ceilings, kernels or counters
    result.points[0].activity.unavailable = "no records here";
    const Json data = data_of(write_html(result));
    EXPECT_EQ(data["ceilings"].at("blocks")[0].at("tone"), "missing");
    EXPECT_THAT(data["ceilings"].at("blocks")[0].at("text").get<std::string>(), Not(""));
    EXPECT_EQ(data["points"][0]["timeline"]["unavailable"], "no records here");
    EXPECT_FALSE(data["points"][0]["timeline"]["rows"].empty()) << "steps stand in for kernels";
    const Json& skipped = data["points"].back();
    EXPECT_EQ(skipped["status"], "skipped");
    for (const char* part : {"ledger", "roofline", "attribution"}) EXPECT_NE(skipped[part]["unavailable"], "") << part;
    EXPECT_NE(skipped["heat"]["unavailable"], "");
}

TEST(Html, AResultWithoutPointsIsAPageToo) { EXPECT_TRUE(data_of(write_html(Result{}))["points"].empty()); }

TEST(Html, NumbersThatAreNotFiniteAreNull) {
    Result result = example_with_counters();
    std::vector<Explanation> explanations;
    for (const Point& point : result.points) explanations.push_back(explain(result, point));
    EXPECT_TRUE(report_data({result, explanations})["points"][0]["ledger"].at("end_to_end_us").is_number());
    explanations[0].ledger.end_to_end_us = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(report_data({result, explanations})["points"][0]["ledger"].at("end_to_end_us").is_null());
}

TEST(Html, EveryPointNeedsItsExplanation) { EXPECT_THROW(write_html({example::result(), {}}), std::invalid_argument); }

TEST(Html, IsTheSameForTheSameResult) {
    EXPECT_EQ(write_html(example_with_counters()), write_html(example_with_counters()));
}

}  // namespace
}  // namespace kbench
