// Which rows and columns of results a table shows: grouping, order and choice. How it is written: report/writers.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/table/columns.h"
#include "kbench/result.h"

namespace kbench {

/// What one row of the table is. A group never spans points; groups stand in order of their first step.
struct TableLevel {
    std::string_view name;
    std::string_view what;
    std::vector<std::string> default_columns;
    /// Steps of a point with the same key are one row; nothing where each step is its own.
    std::optional<std::string> (*key)(const StepResult& step, bool fold);
    bool can_fold = false;
    bool rows_are_kernels = false;    ///< each kernel is a row; `key` has no part in it
    bool keeps_empty_points = false;  ///< a skipped point is a row too, so that a sweep shows all that was asked for
};
std::span<const TableLevel> table_levels();

/// Throws UsageError that lists the levels when there is none called `name`.
const TableLevel& find_level(std::string_view name);

struct SortBy {
    std::string column;
    std::optional<bool> descending;  ///< without it numbers go from the largest down and text from A to Z
};

/// COLUMN, COLUMN:asc or COLUMN:desc. Throws UsageError on another order.
SortBy parse_sort(std::string_view text);

/// The columns called `names`, in that order, which may be counters; "all" alone is every column and every counter.
/// Throws UsageError.
std::vector<Column> find_columns(std::span<const std::string> names, std::span<const CountedMetric> counters = {});

/// Columns are named, as which there are depends on the counters of the files.
struct TableQuery {
    const TableLevel* level = &find_level("step");
    bool fold = false;                 ///< the same layer of all blocks is one; only by layer
    std::optional<std::size_t> point;  ///< all without one
    std::vector<std::string> columns;  ///< the level's own when empty
    std::optional<SortBy> sort;        ///< in order of execution without it
    std::optional<std::size_t> top;    ///< at most this many rows, after sorting
};

/// Rows point into the files, which must outlive it.
struct QueriedTable {
    std::vector<Column> columns;
    std::vector<TableRow> rows;
};

/// Throws UsageError when `query` asks for what the files cannot give: a column or a point that is not there, folding
/// of what is not a layer.
QueriedTable query_table(std::span<const ResultFile> files, const TableQuery& query);

/// The same of one point, with the columns that the query names, of which those of counters that nobody counted are
/// left out. Rows point into the result.
QueriedTable query_point(const Result& result, std::size_t point, TableQuery query);

/// The counters of a result's points, each once; of a name with two units the first.
std::vector<CountedMetric> counters_of(const Result& result);

}  // namespace kbench
