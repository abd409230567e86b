// What tells points apart: one list of axes. A point's identity and titles, the order of a sweep, matching, merging,
// columns, options and the fields of result.json all follow from it; a new axis is a new row in axes.cpp.
#pragma once

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

/// A count from 1, or a word or a name.
using AxisValue = std::variant<std::int64_t, std::string>;

enum class AxisKind {
    count,  ///< a whole number
    word,   ///< one of Axis::words
    name,   ///< any text
};

/// What it means that two points differ on an axis.
enum class AxisRole {
    what,   ///< they compute something else
    where,  ///< the same on other hardware: `compare` sets them beside each other
    again,  ///< the same once more
};

struct Axis {
    std::string_view name;        ///< the field of result.json, the option without "--", and what stands before a count
    std::string_view title = {};  ///< in sentences, where it is not the name
    std::string_view column = name;
    std::string_view unit = {};  ///< of a count
    std::string_view what;       ///< for the column and the option's help
    AxisKind kind = AxisKind::count;
    std::span<const std::string_view> words = {};    ///< all that a file may hold, in the order of sorting
    std::span<const std::string_view> offered = {};  ///< those of them that `kbench run` can do; none: all
    std::optional<AxisValue> usual = {};             ///< taken where nothing else is asked for
    AxisRole role = AxisRole::what;
    /// Place in the order of a result's points, slowest first; 0: the same in all points of a run. A sweep goes through
    /// its axes in this order. In tens, so that another fits between.
    int order = 0;
    std::string_view option = {};     ///< how its help calls the option's value; empty: it has no such option
    std::string_view otherwise = {};  ///< for the help: what holds without the option where there is no usual value
    bool sweeps = false;              ///< the option takes a list
    bool takes_max = false;           ///< and "max", the most that fit into memory: the value 0
    bool always_told = false;         ///< in titles and tables; the others only where they are not usual
    bool beside_model = false;        ///< a point's name has the bare word after the model's: "NAME bwd"
    bool of_model = false;            ///< a point has it where its model says so
    bool of_training = false;         ///< a point has it where its direction is train
    bool of_backward = false;         ///< a point has it where its direction is bwd or train
    bool needed = false;              ///< a file's point without it is refused
    int since = 1;                    ///< version of the schema; points of older files have its usual value

    std::string_view in_full() const { return title.empty() ? name : title; }
    /// Values speak for themselves: "fp16", not "precision fp16".
    bool is_bare() const { return kind != AxisKind::count && always_told; }
};

/// In the order of result.json.
std::span<const Axis> axes();
/// Throws std::logic_error where there is none.
const Axis& axis_named(std::string_view name);
/// In the order of a result's points, then those without a place in it.
std::span<const Axis* const> axes_in_order();
/// Those that a sweep may vary, the slowest first.
std::span<const Axis* const> sweep_axes();
/// Words before counts, as the columns of a table stand.
std::span<const Axis* const> axes_in_tables();

/// A value on each axis that the point has.
class AxisValues {
  public:
    const AxisValue* find(std::string_view axis) const;
    std::optional<std::int64_t> count(std::string_view axis) const;
    /// The text of a word or a name; the usual one, or nothing, where it is not there.
    const std::string& text(std::string_view axis) const;
    /// Throws std::logic_error for an axis that the list does not have.
    void set(std::string_view axis, AxisValue value);
    void erase(std::string_view axis);
    /// Also where it is not there.
    bool is_usual(const Axis& axis) const;

    bool operator==(const AxisValues&) const = default;

  private:
    std::map<std::string, AxisValue, std::less<>> values_;
};

/// "4", "fp16".
std::string text_of(const AxisValue& value);
/// The same as it is asked for: "max" for 0 where the axis takes it.
std::string asked_text(const Axis& axis, const AxisValue& value);
/// "batch 4", "fp16"; in sentences "sequence length 128".
std::string said(const Axis& axis, const AxisValue& value);
std::string said_in_full(const Axis& axis, const AxisValue& value);

/// By what points are sorted on the axis: words stand as in its list. Nothing where it is not there.
std::optional<AxisValue> sort_key(const Axis& axis, const AxisValues& values);

}  // namespace kbench
