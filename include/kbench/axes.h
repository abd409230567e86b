// The axes that tell points apart, as one list. A point's identity and titles, the order of a sweep, matching, merging,
// columns, options and the fields of result.json all follow from it: a new axis is a new row in axes.cpp.
//
//     kbench::AxisValues values;
//     values.set("batch", 4);
//     values.set("precision", "fp16");
//     kbench::said(kbench::axis_named("batch"), *values.find("batch"));  // "batch 4"
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kbench {

/// A count, a word or a name; AxisKind says which.
using AxisValue = std::variant<std::int64_t, std::string>;

enum class AxisKind {
    count,  ///< a whole number
    word,   ///< one of Axis::words
    name,   ///< any text
};

/// What it means when two points differ on an axis.
enum class AxisRole {
    what,   ///< the points compute different things
    where,  ///< the same computation on other hardware; `compare` pairs such points
    again,  ///< a repetition of the same measurement
};

struct Axis {
    std::string_view name;        ///< the field of result.json, the option without "--", the label of a count
    std::string_view title = {};  ///< the axis in sentences; empty: its name
    std::string_view column = name;
    std::string_view unit = {};  ///< the unit, for a count
    std::string_view what;       ///< a description for the column and the option's help
    AxisKind kind = AxisKind::count;
    int least = 1;                                   ///< the smallest value of a count
    std::span<const std::string_view> words = {};    ///< every word that a file may hold, in sorting order
    std::span<const std::string_view> offered = {};  ///< the words that `kbench run` can do; empty: all
    /// What a point says where the numbers come from a file; the model's input that holds them has the axis's name.
    std::string_view of_file = {};
    std::optional<AxisValue> usual = {};  ///< the value where none is asked for
    AxisRole role = AxisRole::what;
    /// Position of the axis when a result's points are sorted, slowest first; a sweep nests its loops in this order.
    /// 0: the value is the same in all points of a run. Numbers go in tens, so that a new axis fits between two.
    int order = 0;
    std::string_view option = {};     ///< placeholder of the option's value in the help; empty: there is no option
    std::string_view otherwise = {};  ///< for the help: what applies without the option, where no usual value does
    bool sweeps = false;              ///< the option takes a list
    bool takes_max = false;           ///< the option also takes "max", the most that fits into memory, stored as 0
    bool always_told = false;         ///< always shown in titles and tables; the others only when not usual
    bool beside_model = false;        ///< a point's name has the bare word after the model's: "NAME bwd"
    bool of_model = false;            ///< only points whose model asks for it have it
    bool of_training = false;         ///< only points with direction train have it
    bool of_backward = false;         ///< only points with direction bwd or train have it
    /// Its words are a model's phases: which pass is built, and so which axes a point has. A point of the usual phase
    /// does not say so.
    bool selects_phase = false;
    std::span<const std::string_view> phases = {};  ///< only points of these phases have it; empty: all
    bool needed = false;                            ///< a point in a file without it is refused
    int since = 1;  ///< schema version that added it; points of older files have its usual value

    std::string_view in_full() const { return title.empty() ? name : title; }
    /// Whether a point of that phase may have the axis.
    bool is_of_phase(std::string_view phase) const {
        return phases.empty() || std::ranges::find(phases, phase) != phases.end();
    }
    /// Whether the value is shown without the axis's name: "fp16", not "precision fp16".
    bool is_bare() const { return kind != AxisKind::count && always_told; }
    std::span<const std::string_view> offered_words() const { return offered.empty() ? words : offered; }
};

/// All axes, in the order of result.json's fields.
std::span<const Axis> axes();
/// The axis called `name`; throws std::logic_error when there is none.
const Axis& axis_named(std::string_view name);
/// The one that selects the phase.
const Axis& phase_axis();
/// All axes, sorted by Axis::order; those of order 0 come last.
std::span<const Axis* const> axes_in_order();
/// The axes that a sweep may vary, slowest first.
std::span<const Axis* const> sweep_axes();
/// The axes as a table's columns: words first, then counts.
std::span<const Axis* const> axes_in_tables();

/// The value of a point on each axis that it has.
class AxisValues {
  public:
    const AxisValue* find(std::string_view axis) const;
    std::optional<std::int64_t> count(std::string_view axis) const;
    /// The text of a word or a name. Where the point has none: the usual value, or an empty text.
    const std::string& text(std::string_view axis) const;
    /// Sets the value; throws std::logic_error for an axis that is not in the list.
    void set(std::string_view axis, AxisValue value);
    void erase(std::string_view axis);
    /// Whether the value is the usual one; true also where the point has none.
    bool is_usual(const Axis& axis) const;
    /// The phase, said or not.
    const std::string& phase() const { return text(phase_axis().name); }

    bool operator==(const AxisValues&) const = default;

  private:
    std::map<std::string, AxisValue, std::less<>> values_;
};

/// The value alone: "4", "fp16".
std::string text_of(const AxisValue& value);
/// The value as a user types it: "max" for 0 where the axis takes it.
std::string asked_text(const Axis& axis, const AxisValue& value);
/// The value with its label: "batch 4", "fp16"; `said_in_full` has the title: "sequence length 128".
std::string said(const Axis& axis, const AxisValue& value);
std::string said_in_full(const Axis& axis, const AxisValue& value);

/// What is wrong where a point is to have an axis that other phases have: "--past: only --phase decode has one".
std::string only_of_its_phases(const Axis& axis);

/// The key that sorts points on the axis: a word sorts by its place in Axis::words. Empty where the point has none.
std::optional<AxisValue> sort_key(const Axis& axis, const AxisValues& values);

}  // namespace kbench
