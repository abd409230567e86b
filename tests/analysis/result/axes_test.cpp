// One row of the table of axes gives identity, titles, matching, merging, columns and fields; and a point that does not
// have an axis is written, read, compared and shown without a word of it.
#include "kbench/axes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "analysis/result/match.h"
#include "analysis/result/merge.h"
#include "analysis/result/point_name.h"
#include "analysis/result/result_json.h"
#include "analysis/table/table_query.h"
#include "kbench/error.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// One of two values that an axis may have.
AxisValue value_of(const Axis& axis, bool other) {
    if (axis.kind == AxisKind::count) return other ? 7 : 1;
    if (axis.kind == AxisKind::name) return other ? "gpt2-xl" : "gpt2";
    return std::string(axis.words[other ? 1 : 0]);
}

/// A finished point with a value on every axis, on this one the other of its two.
Point with_all(const Axis* changed = nullptr) {
    Point point;
    for (const Axis& axis : axes()) point.axes.set(axis.name, value_of(axis, &axis == changed));
    point.status = PointStatus::done;
    EndToEnd& times = point.end_to_end.emplace();
    times.latency.summary_ms = summarise(std::vector<double>(6, 1));
    times.sequences_per_s = times.tokens_per_s = 1;
    times.energy_per_sequence_j = times.energy_per_token_j = Quantity::derived(1);
    return point;
}

class EveryAxis : public testing::TestWithParam<const Axis*> {
  protected:
    const Axis& axis() const { return *GetParam(); }
    Point base_ = with_all(), other_ = with_all(GetParam());
    std::string text_ = text_of(value_of(axis(), true));
};

TEST_P(EveryAxis, IsAFieldThatIsReadAgain) {
    Result result;
    result.points = {base_, other_};
    const nlohmann::ordered_json json = to_json(result);
    const auto& field = json["points"][1][std::string(axis().name)];
    EXPECT_EQ(field.is_string() ? field.get<std::string>() : std::to_string(field.get<int>()), text_);
    const Result again = parse_result(json.dump(), "result.json");
    EXPECT_EQ(again.points[0].axes, base_.axes);
    EXPECT_EQ(again.points[1].axes, other_.axes);
}

TEST_P(EveryAxis, IsInNamesAndTitles) {
    EXPECT_NE(point_name(base_), point_name(other_));
    EXPECT_THAT(point_name(other_), HasSubstr(text_));
    EXPECT_THAT(point_heading(other_), HasSubstr(text_));
    if (axis().role == AxisRole::where) return;
    EXPECT_NE(match_title(base_), match_title(other_));
    EXPECT_EQ(short_titles({&base_, &other_})[1], said(axis(), value_of(axis(), true)));
}

TEST_P(EveryAxis, KeepsPointsApartUnlessOnlyThePlaceDiffers) {
    EXPECT_EQ(first_difference(base_, other_), axis().role == AxisRole::what ? &axis() : nullptr);
    const NamedResult a{"a", "a", {{}, {}, {base_}, {}, {}}}, b{"b", "b", {{}, {}, {other_}, {}, {}}};
    if (axis().role == AxisRole::where) {
        EXPECT_EQ(match_points(a, b).size(), 1u);
    } else {
        EXPECT_THAT([&] { match_points(a, b); },
                    testing::ThrowsMessage<UsageError>(HasSubstr(said(axis(), value_of(axis(), true)))));
    }
}

TEST_P(EveryAxis, IsMergedByValueAndInOrder) {
    Result a, b;
    a.points = {other_};
    b.points = {base_};
    const Result both = merge_results({{"a", a}, {"b", b}});
    ASSERT_EQ(both.points.size(), 2u);
    EXPECT_EQ(both.points[0].axes, base_.axes);
}

TEST_P(EveryAxis, IsAColumn) {
    ResultFile file{"result.json", {}};
    file.result.points = {base_, other_};
    TableQuery query;
    query.level = &find_level("point");
    query.columns = {std::string(axis().column)};
    const QueriedTable table = query_table({&file, 1}, query);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(exact(table.columns[0].value(table.rows[1])), text_);
    EXPECT_NE(table.columns[0].value(table.rows[0]), table.columns[0].value(table.rows[1]));
    const std::vector<std::string>& by_default = query.level->default_columns;
    EXPECT_EQ(std::ranges::count(by_default, axis().column), axis().order != 0 ? 1 : 0);
}

TEST_P(EveryAxis, IsInTheTableOfASweepWhereItVaries) {
    Result sweep;
    sweep.points = {base_, other_};
    const std::string text = render_terminal({"", {section_called("points", {sweep, Depth::summary})}}, 200);
    EXPECT_THAT(text, AllOf(HasSubstr(axis().name), HasSubstr(text_)));
}

TEST_P(EveryAxis, ThatAnOlderFileDoesNotHaveHasItsUsualValue) {
    Result result;
    result.points = {base_};
    nlohmann::ordered_json json = to_json(result);
    json["points"][0].erase(std::string(axis().name));
    if (axis().needed) {
        EXPECT_THROW(parse_result(json.dump(), "x"), UsageError);
        return;
    }
    EXPECT_EQ(parse_result(json.dump(), "x").points[0].axes.find(axis().name), nullptr) << "nothing is made up";
    const auto read_as = [&](int version) {
        json["schema"] = fmt::format("kbench.result/{}", version);
        return parse_result(json.dump(), "x").points[0];
    };
    if (axis().since > 1) {
        const Point old = read_as(axis().since - 1);
        const AxisValue* value = old.axes.find(axis().name);
        // Models that have a newer axis are newer than the file, too.
        EXPECT_EQ(value ? std::optional(*value) : std::nullopt, axis().of_model ? std::nullopt : axis().usual);
    }
    if (axis().since <= 4) {
        EXPECT_THROW(read_as(4), UsageError) << "until version 4 each point had it";
    }
}

std::vector<const Axis*> all_axes() { return {axes_in_order().begin(), axes_in_order().end()}; }

INSTANTIATE_TEST_SUITE_P(Axes, EveryAxis, testing::ValuesIn(all_axes()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(Axes, ThatAreUnknownAreRefused) {
    Point point;
    EXPECT_THROW(point.set("sequence", 8), std::logic_error);
}

TEST(Axes, AbsentMeansUsualWhereThereIsAUsualValue) {
    Point older = with_all(), newer = with_all();
    older.axes.erase("attention");
    EXPECT_EQ(first_difference(older, newer), nullptr);
    newer.set("attention", "unfused");
    EXPECT_EQ(first_difference(older, newer), &axis_named("attention"));
}

/// As `kbench micro` writes one: an op has no sequences, no tokens and no attention around it.
Result of_one_op() {
    Result result = example::profiled_result();
    result.warnings.clear();
    result.points.resize(1);
    Point& point = result.points[0];
    point.set("model", "gemm/cublaslt/fp16/fwd/m8n8k8/cold");
    for (const char* axis : {"seq", "attention", "batch", "repeat"}) point.axes.erase(axis);
    point.steps = {point.steps[2]};
    point.steps[0].layer = "micro";
    point.steps[0].absorbs = {"micro:gemm"};
    point.marginal.clear();
    point.largest_batches.clear();
    point.memory.bytes[static_cast<std::size_t>(Role::tokens)] = 0;
    point.verification.steps.resize(1);
    EndToEnd& times = *point.end_to_end;
    times.stream = times.enqueue = times.host_to_device = times.device_to_host = std::nullopt;
    times.sequences_per_s = times.tokens_per_s = std::nullopt;
    times.energy_per_sequence_j = times.energy_per_token_j = std::nullopt;
    return result;
}

const auto says_nothing_of_sequences = AllOf(Not(HasSubstr("seq")), Not(HasSubstr("Seq")), Not(HasSubstr("token")),
                                             Not(HasSubstr("attention")), Not(HasSubstr("batch ")));

TEST(AnOp, IsWrittenAndReadWithoutWhatItDoesNotHave) {
    const Result result = of_one_op();
    const nlohmann::ordered_json point = to_json(result)["points"][0];
    for (const char* field : {"seq", "attention", "batch", "repeat"}) EXPECT_FALSE(point.contains(field)) << field;
    for (const char* field : {"tokens_per_s", "sequences_per_s", "energy_per_sequence_j", "energy_per_token_j"})
        EXPECT_FALSE(point["end_to_end"].contains(field)) << field;
    const Result again = parse_result(to_text(result), "result.json");
    EXPECT_EQ(again.points[0].axes, result.points[0].axes);
    EXPECT_FALSE(again.points[0].end_to_end->tokens_per_s);
    EXPECT_EQ(to_text(again), to_text(result));
}

TEST(AnOp, WithNullForWhatItDoesNotHaveIsRefused) {
    nlohmann::ordered_json json = to_json(of_one_op());
    json["points"][0]["end_to_end"]["tokens_per_s"] = nullptr;
    EXPECT_THAT([&] { parse_result(json.dump(), "x"); },
                testing::ThrowsMessage<UsageError>(HasSubstr("end_to_end.tokens_per_s: expected a value")));
}

TEST(AnOp, MatchesAndMergesWithItself) {
    const NamedResult a{"a", "a", of_one_op()}, b{"b", "b", of_one_op()};
    EXPECT_EQ(match_points(a, b).size(), 1u);
    EXPECT_EQ(match_title(a.result.points[0]), "gemm/cublaslt/fp16/fwd/m8n8k8/cold fp16");
    EXPECT_EQ(merge_results({{"a", a.result}, {"b", b.result}}).points.size(), 1u);
}

TEST(AnOp, IsShownWithoutAWordOfSequences) {
    Result result = of_one_op();
    EXPECT_EQ(point_name(result.points[0]), "gemm/cublaslt/fp16/fwd/m8n8k8/cold, fp16, cuda");
    result.environment.command_line.clear();
    EXPECT_THAT(write_terminal(result, 100), says_nothing_of_sequences);
    EXPECT_THAT(write_markdown(result), says_nothing_of_sequences);
    const NamedResult a{"a", "a", result}, b{"b", "b", result};
    const std::vector<NamedResult> runs{a, b};
    result.points.push_back(result.points[0]);
    result.points.back().set("model", "gemm/cublaslt/fp16/fwd/m16n8k8/cold");
    EXPECT_THAT(write_terminal(result, 100), says_nothing_of_sequences) << "nor the table of all points";
}

TEST(AnOp, HasNoColumnOfSequencesUnlessItIsAskedFor) {
    const ResultFile file{"result.json", of_one_op()};
    TableQuery query;
    query.level = &find_level("point");
    const auto names = [&] {
        std::vector<std::string> list;
        for (const Column& column : query_table({&file, 1}, query).columns) list.push_back(column.name);
        return list;
    };
    EXPECT_THAT(names(), AllOf(Contains("precision"), Contains("latency_ms"), Not(Contains("seq_len")),
                               Not(Contains("batch")), Not(Contains("repeat")), Not(Contains("tokens_per_s"))));
    query.columns = {"seq_len"};
    EXPECT_THAT(names(), Contains("seq_len"));
}

TEST(AnOp, LeavesSequencesOutOfThePage) {
    const Result result = of_one_op();
    const ExplainedResult explained(result);
    for (const char* section : {"figures", "answer", "sweep"})
        EXPECT_THAT(document_json({"", {section_called(section, {explained})}}).dump(),
                    AllOf(says_nothing_of_sequences, Not(HasSubstr("throughput"))));
}

}  // namespace
}  // namespace kbench
