// A document of every kind of part: what text shows of it, and what the page's scripts read.
#include "analysis/report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

Chart bars(std::string title) {
    return {std::move(title), "measured",
            BarChart{"ms", {"wte", "lm_head"}, {{"time", {1.23456789, none}, {1, none}, {2, none}, {"one\ntwo", ""}}}}};
}

RooflineChart roofline() {
    RooflineChart chart{
        {{"l2_read", 5e12, true, "measured"}, {"fp16_tensor", 9e14, false, "measured"}}, {}, {}, {}, {}, {}};
    chart.marks.push_back({.flop_per_byte = 100,
                           .flop_per_s = 4e14,
                           .group = place_in(chart.groups, "gemm"),
                           .layer = place_in(chart.layers, "h.*.attn"),
                           .shape = place_in(chart.shapes, "DRAM"),
                           .view = place_in(chart.views, "steps"),
                           .size = 12,
                           .label = "h.0.attn",
                           .hover = "0 h.0.attn",
                           .key = 7});
    return chart;
}

/// Every kind of part, and below it what only a page shows.
Document everything() {
    Section section{
        "Where the time goes",
        {Paragraph{"All of it.", Tone::lead}, Bullets{{"one item"}}, Facts{{{"latency", "2 ms", "measured"}}},
         Rows{{{"op", Align::left}, {.header = "ms", .what = "its time"}}, {{"gemm", "2.0"}}, "by op"},
         bars("Time by layer")}};
    Rows steps{{{"step"}, {"layer", Align::left}}, {{"0", "h.0.attn"}, {"1", "h.0.mlp"}}};
    steps.is_long = true;
    steps.keys = {7, std::nullopt};
    section.add(Section{"All steps", {steps}, {}, "", true});
    Section charts{
        "Charts",
        {Chart{"stacked", "", BarChart{"ms", {"model"}, {{"kernels", {2}}, {"recording", {-0.1}}}, true}},
         Chart{"curve", "", CurveChart{{"batch", true}, {"ms"}, {{std::vector<double>{1, 2}, {"fp16", {3, 4}}}}}},
         Chart{"words", "", CurveChart{{}, {}, {{std::vector<std::string>{"fwd"}, {"fp16", {3}}}}}},
         Chart{"roofline", "", roofline()},
         Chart{"heat", "", HeatChart{{"wte"}, {{"share %", "of the time", 100, 1, {none}}}}},
         Chart{"timeline", "", TimelineChart{"us", {"gemm"}, {{1, 2, 0, "a kernel", 7}}}}}};
    Section points{"", {}, {Section{"a point", {Paragraph{"fast"}}}, Section{"a point", {Paragraph{"slow"}}}}, "Point"};
    Section only{"Method", {Paragraph{"told on the page"}}};
    only.is_only_on_page = true;
    return {"A document", {std::move(section), std::move(charts), std::move(points), std::move(only)}};
}

TEST(Document, TextShowsAllButChartsAndWhatIsLong) {
    for (const std::string& text : {render_markdown(everything()), render_terminal(everything(), 100)}) {
        for (const char* shown : {"Where the time goes", "All of it.", "one item", "latency", "gemm", "fast", "slow"})
            EXPECT_THAT(text, HasSubstr(shown));
        for (const char* left_out : {"Time by layer", "All steps", "h.0.attn", "Charts", "stacked", "told on the page"})
            EXPECT_THAT(text, Not(HasSubstr(left_out)));
    }
}

TEST(Document, APageHasEveryPart) {
    const Json document = document_json(everything());
    ASSERT_EQ(document["sections"].size(), 4u);
    const Json& section = document["sections"][0];
    EXPECT_EQ(section["id"], "where-the-time-goes");
    const char* kinds[] = {"paragraph", "bullets", "facts", "table", "chart"};
    ASSERT_EQ(section["blocks"].size(), std::size(kinds));
    for (std::size_t i = 0; i < std::size(kinds); ++i) EXPECT_EQ(section["blocks"][i]["kind"], kinds[i]);
    EXPECT_EQ(section["blocks"][0]["tone"], "lead");
    EXPECT_EQ(section["blocks"][3]["columns"][1]["what"], "its time");
    const Json& steps = section["sections"][0];
    EXPECT_TRUE(steps["folded"].get<bool>());
    EXPECT_TRUE(steps["blocks"][0]["long"].get<bool>());
    EXPECT_EQ(steps["blocks"][0]["keys"], (Json{7, nullptr}));
    const char* charts[] = {"stacked", "curve", "curve", "roofline", "heat", "timeline"};
    const Json& drawn = document["sections"][1]["blocks"];
    ASSERT_EQ(drawn.size(), std::size(charts));
    for (std::size_t i = 0; i < std::size(charts); ++i) EXPECT_EQ(drawn[i]["chart"], charts[i]);
    EXPECT_EQ(document["sections"][2]["choice"], "Point");
}

TEST(Document, NumbersHaveSixDigitsAndWhatIsNotFiniteIsNull) {
    const Json series = document_json(everything())["sections"][0]["blocks"][4]["series"][0];
    EXPECT_EQ(series["values"], (Json{1.23457, nullptr}));
    EXPECT_EQ(series["hover"][0], "one\ntwo");
    const Json charts = document_json(everything())["sections"][1]["blocks"];
    EXPECT_EQ(charts[1]["series"][0]["x"], (Json{1, 2}));
    EXPECT_EQ(charts[2]["series"][0]["x"], (Json{"fwd"}));
    EXPECT_EQ(charts[3]["marks"]["key"], (Json{7}));
    EXPECT_EQ(charts[4]["values"], (Json{{nullptr}}));
}

TEST(Document, SectionsOfOneTitleHaveIdsOfTheirOwn) {
    const Json points = document_json(everything())["sections"][2]["sections"];
    EXPECT_EQ(points[0]["id"], "a-point");
    EXPECT_EQ(points[1]["id"], "a-point-2");
}

TEST(Document, WhatIsNothingIsNotOnAPage) {
    const Document document{"",
                            {Section{"Empty", {Paragraph{}, Chart{"none", "", BarChart{}}}}, Section{"", {Bullets{}}}}};
    const Json sections = document_json(document)["sections"];
    EXPECT_TRUE(sections.empty()) << sections.dump();
}

TEST(Document, AHeadingWithNothingBelowItIsNotShown) {
    Section holds_empty{"Holds an empty one", {Paragraph{"words"}}};
    holds_empty.sections.push_back({"Empty below", {Paragraph{}}});
    Section only_empty{"Only an empty one"};
    only_empty.sections.push_back({"Empty below too"});
    const Document document{"A document", {Section{"Empty"}, std::move(holds_empty), std::move(only_empty)}};
    for (const std::string& text : {render_markdown(document), render_terminal(document, 100)}) {
        EXPECT_THAT(text, HasSubstr("Holds an empty one"));
        for (const char* title : {"Empty", "Empty below", "Only an empty one"})
            EXPECT_THAT(text, Not(HasSubstr(std::string(title) + "\n"))) << text;
    }
    const Json sections = document_json(document)["sections"];
    ASSERT_EQ(sections.size(), 1u) << sections.dump();
    EXPECT_TRUE(sections[0]["sections"].empty());
}

TEST(Document, IsOneFile) {
    const std::string page = render_html(everything());
    EXPECT_NE(page.find("<title>A document</title>"), page.npos);
    EXPECT_EQ(page_document(page), document_json(everything()));
}

}  // namespace
}  // namespace kbench
