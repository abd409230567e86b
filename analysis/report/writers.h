// The writers: pure functions from a result and its explanation to text. They measure nothing and know no device.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/compare/compare.h"
#include "analysis/explain/explain.h"
#include "analysis/table/table_query.h"
#include "kbench/result.h"

namespace kbench {

/// The answer on one screen: what was measured, whether it is bandwidth-bound, what binds it, where the time goes and
/// what would give it back, layers with their occupancy; of several points a row each. A study has its
/// summary. `width`: columns of the terminal.
std::string write_screen(const ExplainedResult& explained, int width);
/// The summary for a terminal: environment, one block a point (performance, memory, verification, conditions), the sums
/// by op kind and by layer group, skips and warnings. `width`: columns of the terminal.
std::string write_terminal(const ExplainedResult& explained, int width);

/// report.md, for pull requests (GitHub's Markdown): the answer, then what it rests on, point by point; of a sweep a
/// table of all points first. Names and reasons stay text, whatever they hold.
std::string write_markdown(const ExplainedResult& explained);

/// trace.json: Chrome's trace event format, for Perfetto. A process a point, in which one forward is laid out by its
/// medians on the tracks layer, step, kernel and copies, with counter tracks; beside it a process with the conditions
/// of the timing run. What a track lacks is told under otherData. What steps repeat stands once, and of several points
/// less is told of each, so that a long sweep stays small.
std::string write_trace(const ExplainedResult& explained);
/// report.html: one file that needs no network, see render/render.h.
std::string write_html(const ExplainedResult& explained);

/// How `kbench table` writes: `space` is aligned for people, the others are for documents and programs.
enum class TableFormat { space, markdown, json, csv };
inline constexpr std::string_view table_format_names[] = {"space", "markdown", "json", "csv"};

/// `width`, for `space` only: the widest line; names lose their middle to fit, numbers never. Where even that does not
/// suffice lines are longer; `narrowest_table` says how long they must be.
std::string write_table(const QueriedTable& table, TableFormat format, std::optional<std::size_t> width = {});
std::size_t narrowest_table(const QueriedTable& table);

/// How `kbench compare` writes.
enum class CompareFormat { text, markdown, html, json };
inline constexpr std::string_view compare_format_names[] = {"text", "markdown", "html", "json"};

/// Roofs, end to end, the evidence and the steps of every point, what it costs, changes. `top`: at most this many rows
/// of steps a point. `width`: columns of text; Markdown has no width.
std::string write_comparison(const Comparison& comparison, CompareFormat format, std::size_t top, std::size_t width);
/// The same figures in full precision; steps whole unless `top` limits them.
std::string write_comparison_json(const Comparison& comparison, std::optional<std::size_t> top);

/// How `kbench ceilings` writes: `text` is aligned for people, `json` is what stands in a result.json.
enum class CeilingFormat { text, json, markdown };
inline constexpr std::string_view ceiling_format_names[] = {"text", "json", "markdown"};

/// Value, interval, clock and share of the datasheet of every ceiling. `width`: the widest line of `text`.
std::string write_ceilings(const CeilingRun& run, CeilingFormat format, std::size_t width);

}  // namespace kbench
