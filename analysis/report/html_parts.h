// Parts of the report's data, for html_data.cpp alone. Every list of steps is in the order of the point's steps.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "analysis/explain/directions.h"
#include "analysis/explain/explain.h"
#include "analysis/report/document.h"
#include "analysis/table/table_query.h"
#include "kbench/result.h"

namespace kbench {

using ReportJson = nlohmann::ordered_json;

/// With six significant digits; null for what is not finite.
ReportJson report_number(double value);
ReportJson optional_number(const std::optional<double>& value);

/// null where it says nothing.
ReportJson section_data(const Section& section);

/// The study's answers, their charts, and what stands behind them; null of a result that is no study.
ReportJson study_data(const ExplainedResult& explained);
/// The chart of forward against backward; its rows: op kind, ms forward, ms backward, null where it has no such steps.
ReportJson direction_bars(const Directions& directions);

ReportJson ledger_data(const Point& point, const Ledger& ledger);
ReportJson roofline_data(const Point& point, const Roofline& roofline);
ReportJson attribution_data(const Attribution& attribution);
ReportJson verdicts_data(const Verdicts& verdicts);

/// The tables of steps and of kernels of one point, columns of columns.h, without those that hold no value. The table
/// of steps also has what the explanation says of each; its steps are in `point`.
ReportJson tables_data(const ResultFile& file, std::size_t point_index, const Point& point,
                       const Explanation& explanation);

/// Layer (of all blocks) by metric.
ReportJson heat_data(const ResultFile& file, std::size_t point_index, const Explanation& explanation);

}  // namespace kbench
