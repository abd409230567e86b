// The rows of a table: their order, groups and choice, and how each format writes them.
#include "analysis/table_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/breakdown.h"
#include "analysis/write/writers.h"
#include "models/error.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<ResultFile> files(Result result) {
    std::vector<ResultFile> list;
    list.push_back({"run/result.json", std::move(result)});
    return list;
}

TableQuery by(std::string_view level, const std::vector<std::string>& names = {}) {
    TableQuery query;
    query.level = &find_level(level);
    query.columns = find_columns(names);
    return query;
}

/// The cells of one column, for programs.
std::vector<std::string> cells(const QueriedTable& table, std::string_view column) {
    std::vector<std::string> list;
    for (const TableRow& row : table.rows) list.push_back(exact(find_column(column).value(row)));
    return list;
}

std::string refusal(const std::function<void()>& ask) {
    try {
        ask();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

const std::vector<ResultFile>& whole() {
    static const std::vector<ResultFile> list = files(example::result());
    return list;
}

/// What a golden file shows: groups with what they share and what not, sums, and a skipped point.
std::string golden_text(TableFormat format) {
    TableQuery layers = by("layer", {"point", "layer", "op", "kernel", "steps", "sil", "share", "tflop_per_s", "tc"});
    layers.fold = true;
    return write_table(query_table(whole(), layers), format);
}

TEST(TableQuery, SpaceMatchesTheGoldenFile) {
    const std::vector<ResultFile> few = files(example::short_result());
    expect_golden("table.txt", write_table(query_table(few, by("step")), TableFormat::space, 100) + "\n" +
                                   golden_text(TableFormat::space) + "\n" +
                                   write_table(query_table(few, by("point")), TableFormat::space));
}

TEST(TableQuery, MarkdownMatchesTheGoldenFile) { expect_golden("table.md", golden_text(TableFormat::markdown)); }

TEST(TableQuery, JsonMatchesTheGoldenFile) { expect_golden("table.json", golden_text(TableFormat::json)); }

TEST(TableQuery, CsvMatchesTheGoldenFile) { expect_golden("table.csv", golden_text(TableFormat::csv)); }

TEST(TableQuery, ARowIsAStepUnlessAskedOtherwise) {
    const QueriedTable table = query_table(whole(), {});
    EXPECT_EQ(table.rows.size(), 3 * whole()[0].result.points[0].steps.size());
    EXPECT_EQ(table.rows[300].index, 300u);
    std::vector<std::string> names;
    for (const Column* column : table.columns) names.push_back(column->name);
    EXPECT_THAT(names, ElementsAre("idx", "dir", "sub", "mod", "op", "kernel", "params", "sil")) << "as PyProf's";
}

TEST(TableQuery, EveryLevelHasColumnsThatExist) {
    for (const TableLevel& level : table_levels()) EXPECT_FALSE(find_columns(level.default_columns).empty());
}

TEST(TableQuery, OpsAreNumberedThroughTheForwardPass) {
    TableQuery query = by("step", {"seq"});
    query.point = 0;
    const std::vector<std::string> seq = cells(query_table(whole(), query), "seq");
    EXPECT_THAT(std::vector(seq.begin(), seq.begin() + 5), ElementsAre("0", "1", "2,3", "4", "5"));
}

TEST(TableQuery, GroupsNeverMixPoints) {
    const QueriedTable table = query_table(whole(), by("op"));
    EXPECT_THAT(cells(table, "point"), ElementsAre("0", "0", "0", "0", "1", "1", "1", "1", "2", "2", "2", "2"));
}

TEST(TableQuery, GroupsAgreeWithTheSummarysSums) {
    TableQuery query = by("layer");
    query.fold = true;
    query.point = 0;
    const Breakdown summary = by_layer(whole()[0].result.points[0]);
    const QueriedTable table = query_table(whole(), query);
    ASSERT_EQ(table.rows.size(), summary.groups.size());
    for (const TableRow& row : table.rows) {
        const std::string layer = exact(find_column("layer").value(row));
        const auto group = std::ranges::find(summary.groups, layer, &StepGroup::name);
        ASSERT_NE(group, summary.groups.end()) << layer;
        EXPECT_EQ(row.steps.size(), group->steps);
        EXPECT_DOUBLE_EQ(std::get<double>(find_column("time_us").value(row)), group->time_us);
        EXPECT_DOUBLE_EQ(std::get<double>(find_column("share").value(row)), 100 * group->share);
        EXPECT_DOUBLE_EQ(std::get<double>(find_column("tflop_per_s").value(row)), group->tflop_per_s());
        EXPECT_DOUBLE_EQ(std::get<double>(find_column("gb_per_s").value(row)), group->gb_per_s());
    }
}

TEST(TableQuery, ASkippedPointIsARowOfPointsOnly) {
    EXPECT_THAT(cells(query_table(whole(), by("point")), "status"), ElementsAre("done", "done", "done", "skipped"));
    EXPECT_THAT(cells(query_table(whole(), by("point")), "time_us").back(), "na");
    TableQuery skipped = by("step");
    skipped.point = 3;
    const QueriedTable none = query_table(whole(), skipped);
    EXPECT_TRUE(none.rows.empty());
    EXPECT_EQ(write_table(none, TableFormat::json), "[]\n");
    EXPECT_EQ(write_table(none, TableFormat::csv), "idx,dir,sub,mod,op,kernel,params,sil\n");
}

TEST(TableQuery, SortsNumbersDownAndTextUpUnlessToldOtherwise) {
    TableQuery query = by("op");
    query.point = 0;
    const auto sorted = [&](const char* by_column) {
        query.sort = parse_sort(by_column);
        return cells(query_table(whole(), query), "op");
    };
    EXPECT_THAT(sorted("time_us"), ElementsAre("gemm", "attention", "layernorm", "embedding"));
    EXPECT_THAT(sorted("time_us:asc"), ElementsAre("embedding", "layernorm", "attention", "gemm"));
    EXPECT_THAT(sorted("op"), ElementsAre("attention", "embedding", "gemm", "layernorm"));
    EXPECT_THAT(sorted("op:desc"), ElementsAre("layernorm", "gemm", "embedding", "attention"));
    EXPECT_THAT(sorted("tc"), ElementsAre("embedding", "layernorm", "gemm", "attention")) << "equal rows keep places";
}

TEST(TableQuery, CellsWithoutAValueSortLast) {
    Result result = example::short_result();
    result.points.resize(1);
    result.points[0].steps[1].time_us.reset();
    const std::vector<ResultFile> list = files(std::move(result));
    for (const char* order : {"time_us:asc", "time_us:desc"}) {
        TableQuery query = by("step");
        query.sort = parse_sort(order);
        EXPECT_EQ(cells(query_table(list, query), "time_us").back(), "na") << order;
    }
}

TEST(TableQuery, TopTakesTheFirstRowsAfterSorting) {
    TableQuery query = by("step");
    query.sort = parse_sort("time_us");
    query.top = 2;
    EXPECT_THAT(cells(query_table(whole(), query), "layer"), ElementsAre("lm_head", "h.0.mlp.c_fc"));
}

TEST(TableQuery, SharesOfAPointAddUpToAll) {
    TableQuery query = by("step");
    query.point = 1;
    double sum = 0;
    const QueriedTable table = query_table(whole(), query);
    for (const TableRow& row : table.rows) sum += std::get<double>(find_column("share").value(row));
    EXPECT_NEAR(sum, 100, 1e-9);
}

TEST(TableQuery, SeveralFilesFollowEachOther) {
    std::vector<ResultFile> two = files(example::short_result());
    two.push_back({"other.json", example::short_result()});
    TableQuery query = by("point");
    query.point = 2;
    EXPECT_THAT(cells(query_table(two, query), "file"), ElementsAre("run/result.json", "other.json"));
    EXPECT_THAT(cells(query_table(two, query), "idx"), ElementsAre("0", "1"));
}

TEST(TableQuery, WrongWishesSayWhatWouldBeRight) {
    TableQuery point = by("step"), fold = by("op");
    point.point = 4;
    fold.fold = true;
    EXPECT_EQ(refusal([&] { query_table(whole(), point); }), "--point 4: run/result.json has points 0 to 3");
    EXPECT_THAT(refusal([&] { query_table(whole(), fold); }), HasSubstr("needs --by layer, not --by op"));
    EXPECT_THAT(refusal([] { find_level("kernels"); }), HasSubstr("must be one of step, op, layer, point"));
    EXPECT_THAT(refusal([] { parse_sort("time_us:down"); }), HasSubstr("must be asc or desc, not 'down'"));
    EXPECT_THAT(refusal([] { parse_sort("tme_us"); }), HasSubstr("nearest: time_us"));
    EXPECT_THAT(refusal([] { find_columns(std::vector<std::string>{"op", "al"}); }), HasSubstr("no column 'al'"));
}

TEST(TableQuery, AllIsEveryColumn) {
    EXPECT_EQ(find_columns(std::vector<std::string>{"all"}).size(), columns().size());
}

TEST(TableWidth, IsKeptByShorteningNamesInTheMiddleNeverNumbers) {
    const QueriedTable table = query_table(whole(), by("step", {"idx", "kernel", "layer", "flops", "absorbs", "sil"}));
    const std::size_t narrowest = narrowest_table(table);
    for (const std::size_t width : {narrowest, std::size_t{70}, std::size_t{100}}) {
        std::istringstream lines(write_table(table, TableFormat::space, width));
        std::size_t row = 0;
        std::string line;
        std::getline(lines, line);
        for (; std::getline(lines, line); ++row) {
            ASSERT_LE(line.size(), width) << line;
            const StepResult& step = *table.rows[row].steps[0].step;
            EXPECT_THAT(line, HasSubstr(fmt::format("  {:.0f}  ", step.cost.flops)));
            EXPECT_TRUE(line.ends_with(exact(find_column("sil").value(table.rows[row])))) << line;
        }
        EXPECT_EQ(row, table.rows.size());
    }
    EXPECT_THAT(write_table(table, TableFormat::space, 100), HasSubstr("  algo 66, til.. cluster 2x1  "));
}

TEST(TableFormats, MarkdownEscapesBars) {
    Result result = example::short_result();
    result.points.resize(1);
    result.points[0].steps.resize(1);
    result.points[0].steps[0].implementation = "a|b";
    const std::vector<ResultFile> list = files(std::move(result));
    EXPECT_EQ(write_table(query_table(list, by("step", {"kernel", "idx"})), TableFormat::markdown),
              "| kernel | idx |\n|---|---:|\n| a\\|b | 0 |\n");
}

TEST(TableFormats, JsonIsNullWhereTheTableIsNaAndKeepsFullPrecision) {
    const QueriedTable table = query_table(whole(), by("step", {"tc", "time_us", "op"}));
    const auto json = nlohmann::json::parse(write_table(table, TableFormat::json));
    ASSERT_EQ(json.size(), table.rows.size());
    EXPECT_TRUE(json[0]["tc"].is_null());
    EXPECT_EQ(json[0]["time_us"].get<double>(), whole()[0].result.points[0].steps[0].time_us->median);
}

}  // namespace
}  // namespace kbench
