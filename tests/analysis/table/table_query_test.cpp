// The rows of a table: their order, groups and choice, and how each format writes them.
#include "analysis/table/table_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/explain/step_sums.h"
#include "analysis/report/writers.h"
#include "kbench/error.h"
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
    query.columns = names;
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

TEST(TableQuery, CsvQuotesWhatTheFormatReserves) {
    Result result = example::short_result();
    result.points.resize(1);
    result.points[0].steps.resize(1);
    result.points[0].steps[0].implementation = "tile \"128x128\", stages 4\nline two\r";
    TableQuery query = by("step");
    query.columns = {"implementation", "op"};
    const std::vector<ResultFile> one = files(result);
    EXPECT_EQ(write_table(query_table(one, query), TableFormat::csv),
              "implementation,op\n\"tile \"\"128x128\"\", stages 4\nline two\r\",embedding\n");
}

TEST(TableQuery, CsvKeepsFullPrecision) {
    Result result = example::short_result();
    result.points.resize(1);
    result.points[0].steps.resize(1);
    result.points[0].steps[0].time_us->median = 0.1 + 0.2;
    TableQuery query = by("step");
    query.columns = {"event_us"};
    const std::vector<ResultFile> one = files(result);
    EXPECT_EQ(write_table(query_table(one, query), TableFormat::csv), "event_us\n0.30000000000000004\n");
}

TEST(TableQuery, CsvMatchesTheGoldenFile) { expect_golden("table.csv", golden_text(TableFormat::csv)); }

TEST(TableQuery, ARowIsAStepUnlessAskedOtherwise) {
    const QueriedTable table = query_table(whole(), {});
    EXPECT_EQ(table.rows.size(), 3 * whole()[0].result.points[0].steps.size());
    EXPECT_EQ(table.rows[300].index, 300u);
    std::vector<std::string> names;
    for (const Column& column : table.columns) names.push_back(column.name);
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
    const StepSums summary = by_layer(whole()[0].result.points[0]);
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
    EXPECT_THAT(cells(query_table(whole(), by("point", {"time_us"})), "time_us").back(), "na");
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
    EXPECT_THAT(refusal([] { find_level("kernels"); }),
                HasSubstr("--by 'kernels': did you mean kernel? One of kernel, step, op, layer, point"));
    EXPECT_THAT(refusal([] { parse_sort("time_us:down"); }), HasSubstr("must be asc or desc, not 'down'"));
    TableQuery sorted = by("step");
    sorted.sort = parse_sort("tme_us");
    EXPECT_THAT(refusal([&] { query_table(whole(), sorted); }), HasSubstr("did you mean time_us?"));
    EXPECT_THAT(refusal([] { query_table(whole(), by("step", {"op", "al"})); }), HasSubstr("no column 'al'"));
}

TEST(TableQuery, AllIsEveryColumn) {
    EXPECT_EQ(find_columns(std::vector<std::string>{"all"}).size(), columns().size());
}

/// Two steps: one of two kernels, and one of one; both counted.
Result counted_result() {
    Result result = example::short_result();
    result.points.resize(1);
    Point& point = result.points[0];
    point.steps.resize(2);
    point.activity.runs = 5;
    point.counters.metrics = {{"l1_hit_rate", "%", "hits.pct", Origin::measured, ""},
                              {"ipc", "inst/cycle", "inst.per_cycle", Origin::measured, ""},
                              {"l2_bytes", "byte", "bytes.sum", Origin::measured, ""},
                              {"sectors", "sector", "sectors.ratio", Origin::measured, ""}};
    double time_us = 2;
    for (StepResult& step : point.steps) {
        step.counters = {{"l1_hit_rate", 10 * time_us}, {"l2_bytes", 1e6}, {"sectors", 4 * time_us}};
        KernelResult kernel;
        kernel.short_name = "main_kernel";
        kernel.time_us = time_us;
        kernel.grid = {64, 2, 1};
        step.kernels.push_back(kernel);
        time_us *= 3;
    }
    KernelResult second;
    second.short_name = "reduce";
    second.time_us = 2;
    point.steps[0].kernels.push_back(second);
    return result;
}

/// The cells that a query for one column shows.
std::vector<std::string> shown_cells(const std::vector<ResultFile>& list, const std::string& level,
                                     const std::string& column) {
    const QueriedTable table = query_table(list, by(level, {column}));
    std::vector<std::string> shown;
    for (const TableRow& row : table.rows) shown.push_back(exact(table.columns[0].value(row)));
    return shown;
}

TEST(KernelLevel, MakesEachKernelARowInOrder) {
    const auto list = files(counted_result());
    EXPECT_THAT(shown_cells(list, "kernel", "idx"), ElementsAre("0", "1", "2"));
    EXPECT_THAT(shown_cells(list, "kernel", "step"), ElementsAre("0", "0", "1"));
    EXPECT_THAT(shown_cells(list, "kernel", "sub"), ElementsAre("0", "1", "0"));
    EXPECT_THAT(shown_cells(list, "kernel", "seq"), ElementsAre("0", "0", "1"));
    EXPECT_THAT(shown_cells(list, "kernel", "kernel"), ElementsAre("main_kernel", "reduce", "main_kernel"));
    EXPECT_THAT(shown_cells(list, "kernel", "grid"), ElementsAre("64,2,1", "0,0,0", "64,2,1"));
}

TEST(KernelLevel, HasTheRecordedTimeAndItsShareOfAllKernels) {
    const auto list = files(counted_result());
    EXPECT_THAT(shown_cells(list, "kernel", "sil"), ElementsAre("2000", "2000", "6000"));
    EXPECT_THAT(shown_cells(list, "kernel", "share"), ElementsAre("20", "20", "60"));
    EXPECT_THAT(shown_cells(list, "kernel", "n"), ElementsAre("5", "5", "5"));
    EXPECT_THAT(shown_cells(list, "kernel", "event_p25_us"), ElementsAre("na", "na", "na")) << "a step's";
    EXPECT_THAT(shown_cells(list, "kernel", "flops"), testing::SizeIs(3));
}

TEST(KernelLevel, CountersOfAStepAreNoKernelsUnlessItIsAlone) {
    const auto list = files(counted_result());
    EXPECT_THAT(shown_cells(list, "kernel", "l2_bytes"), ElementsAre("na", "na", "1000000"));
    EXPECT_THAT(shown_cells(list, "kernel", "l1_hit_rate"), ElementsAre("na", "na", "60"));
    EXPECT_THAT(shown_cells(list, "step", "l2_bytes"), ElementsAre("1000000", "1000000"));
}

TEST(KernelLevel, HasNoRowsWithoutRecords) { EXPECT_TRUE(query_table(whole(), by("kernel")).rows.empty()); }

TEST(CounterColumns, CountsAddUpAndTheRestIsWeightedByTime) {
    const auto list = files(counted_result());
    EXPECT_THAT(shown_cells(list, "point", "l2_bytes"), ElementsAre("2000000"));
    EXPECT_THAT(shown_cells(list, "point", "l1_hit_rate"), ElementsAre("44")) << "(4 us of 20 %, 6 us of 60 %) / 10 us";
    EXPECT_THAT(shown_cells(list, "point", "sectors"), ElementsAre("17.6")) << "a ratio of counts is no count";
}

TEST(CounterColumns, AreKnownByTheFilesCountersOnly) {
    const auto list = files(counted_result());
    EXPECT_THAT(shown_cells(list, "step", "ipc"), ElementsAre("na", "na")) << "requested, not read";
    EXPECT_THAT(refusal([&] { shown_cells(list, "step", "l1_hit_rat"); }), HasSubstr("did you mean l1_hit_rate?"));
    EXPECT_THAT(refusal([] { shown_cells(whole(), "step", "l1_hit_rate"); }), HasSubstr("no column 'l1_hit_rate'"));
}

TEST(CounterColumns, AreAmongAllOnce) {
    const auto list = files(counted_result());
    const QueriedTable table = query_table(list, by("step", {"all"}));
    EXPECT_EQ(table.columns.size(), columns().size() + 3) << "ipc has a column already";
    EXPECT_EQ(table.columns.back().name, "sectors");
}

TEST(CounterColumns, Sort) {
    const auto list = files(counted_result());
    TableQuery query = by("step");
    query.sort = parse_sort("l1_hit_rate");
    EXPECT_THAT(cells(query_table(list, query), "step"), ElementsAre("1", "0")) << "numbers from the largest";
}

TEST(CounterColumns, OfOneFileAreNaInAnother) {
    auto list = files(example::short_result());
    list.push_back({"counted.json", counted_result()});
    const auto shown = shown_cells(list, "step", "l2_bytes");
    EXPECT_EQ(shown.front(), "na");
    EXPECT_EQ(shown.back(), "1000000");
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

TEST(TableFormats, NamesStayTextInMarkdown) {
    Result result = example::short_result();
    result.points.resize(1);
    result.points[0].steps.resize(1);
    result.points[0].steps[0].implementation = "a|b<i>";
    const std::vector<ResultFile> list = files(std::move(result));
    EXPECT_EQ(write_table(query_table(list, by("step", {"kernel", "idx"})), TableFormat::markdown),
              "| kernel | idx |\n|---|---:|\n| a&#124;b&#60;i> | 0 |\n");
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
