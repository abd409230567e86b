// A column of a table: its name, its words for people, and its value in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/table/table.h"
#include "kbench/result.h"

namespace kbench {

/// A step and the number of ops that the forward steps of its point before it compute.
struct PlacedStep {
    const StepResult* step;
    std::int64_t first_op;
};

/// What a step computes: the kind of the op, or a program's call as its framework names it.
inline const std::string& op_name(const StepResult& step) {
    return step.call && !step.call->op.empty() ? step.call->op : step.op;
}

/// One row: steps of one point, or a kernel of one step. Points into the result, which must outlive it.
struct TableRow {
    std::string_view file;
    std::size_t index = 0;  ///< in order of execution, before sorting
    std::size_t point_index = 0;
    const Point* point = nullptr;
    std::vector<PlacedStep> steps;  ///< one, or those of a group; none for a point that was skipped
    bool folded = false;            ///< layers are shown with * for each number
    /// Sum over all steps of the point, if every one was timed; over its kernels' recorded times for a kernel.
    std::optional<double> point_time_us;
    const KernelResult* kernel = nullptr;  ///< the row is this kernel of its one step
    std::size_t kernel_number = 0;         ///< within the step
    const Result* result = nullptr;        ///< that the point is of, for its ceilings; null: none are known
    /// The whole point's, shared by its rows; null: there is none.
    std::shared_ptr<const LazyExplanation> explanation;
};

/// Why a cell holds no value: it is not known, or the row's steps differ in it.
enum class NoValue { na, various };
using Value = std::variant<NoValue, std::string, std::int64_t, double>;

constexpr std::string_view name(NoValue none) { return none == NoValue::na ? "na" : "various"; }

/// What is not known is `na`, never 0. In a group times, FLOPs and bytes are summed, rates are recomputed from the
/// sums, and what the steps do not share is `various`. A kernel's row has the kernel's own time and launch; all else
/// is its step's, and counters, which are read a step, are shown only where the step has no other kernel.
struct Column {
    std::string name;    ///< in -c, CSV and JSON
    std::string header;  ///< for people
    std::string unit;
    std::string what;
    Align align = Align::left;
    bool shortens = false;  ///< text that may lose its middle where space is short; numbers never do
    int decimals = 0;       ///< a figure has for people; CSV and JSON keep full precision
    std::function<Value(const TableRow&)> value;
};

}  // namespace kbench
