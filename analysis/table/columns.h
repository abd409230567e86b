// What a table of a result can show: one list of columns drives headers, units, widths, CSV, JSON, Markdown, sorting,
// `kbench list columns` and docs/table.md. A new figure of a step or a kernel is one more row in columns_figures.cpp.
#pragma once

#include <span>
#include <string_view>

#include "analysis/table/column.h"

namespace kbench {

std::span<const Column> columns();

/// A counter under its own name. In a group counts are summed; shares, rates and ratios are weighted by time.
Column counter_column(const CountedMetric& metric);

/// A column of `columns()`, or else of one of `counters`. Throws UsageError with the nearest names when there is no
/// such column.
Column find_column(std::string_view name, std::span<const CountedMetric> counters = {});

/// A value as people read it, with the column's decimals and on one line.
std::string shown(const Column& column, const Value& value);

/// A value for programs: numbers as the shortest decimal that reads back as the same number.
std::string exact(const Value& value);

}  // namespace kbench
