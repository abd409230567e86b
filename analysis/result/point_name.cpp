// A point's names follow from the table of axes and say what is not usual.
#include "analysis/result/point_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "models/base/lists.h"

namespace kbench {
namespace {

/// What is computed, then where, then what is told only where it is not usual.
std::vector<const Axis*> spoken_axes() {
    std::vector<const Axis*> list;
    for (const Axis& axis : axes()) list.push_back(&axis);
    std::ranges::stable_sort(
        list, {}, [](const Axis* axis) { return std::pair(!axis->always_told, axis->role == AxisRole::where); });
    return list;
}

/// The axes that the point has and `is_told` picks, each as `say` has it; what stands beside the model is one with it.
template <class IsTold, class Say>
std::vector<std::string> parts_of(const Point& point, IsTold is_told, Say say) {
    std::vector<std::string> parts;
    for (const Axis* axis : spoken_axes()) {
        const AxisValue* value = point.axes.find(axis->name);
        if (value == nullptr || !is_told(*axis)) continue;
        if (axis->beside_model && !parts.empty())
            parts.front() += " " + text_of(*value);
        else
            parts.push_back(say(*axis, *value));
    }
    return parts;
}

/// In few words: what all points tell, and what makes this one of a run another computation.
auto in_short(const Point& point, bool with_place) {
    return [&point, with_place](const Axis& axis) {
        if (axis.role == AxisRole::where) return with_place;
        return axis.always_told || (axis.role == AxisRole::what && axis.order != 0 && !point.axes.is_usual(axis));
    };
}

std::string named(const Point& point, bool whole_run) {
    const auto is_told = [&](const Axis& axis) {
        return axis.always_told || !point.axes.is_usual(axis) || (whole_run && (axis.order == 0 || axis.beside_model));
    };
    const auto say = [&](const Axis& axis, const AxisValue& value) {
        const bool is_max = axis.takes_max && point.batch_is_max && !whole_run;
        return said(axis, value) + (is_max ? " (max)" : "");
    };
    return joined(parts_of(point, is_told, say), ", ");
}

constexpr TimedWords directions_timed[] = {
    {"fwd", "forward", "forward pass", "forwards"},
    {"bwd", "backward", "backward pass", "backward passes"},
    {"train", "training step", "training step", "training steps"},
};
/// Those of a phase, which runs fwd alone.
constexpr TimedWords phases_timed[] = {
    {"prefill", "prefill", "prefill", "prefills", " to the first token"},
    {"decode", "decode step", "decode step", "decode steps", " a token"},
};

const TimedWords* words_of(std::span<const TimedWords> table, std::string_view what) {
    const auto found = std::ranges::find(table, what, &TimedWords::of);
    return found == table.end() ? nullptr : &*found;
}

}  // namespace

const TimedWords& timed_words(const Point& point) {
    static constexpr TimedWords of_program{"", "iteration", "iteration", "iterations"};
    if (point.program) return of_program;
    if (const TimedWords* words = words_of(phases_timed, point.axes.phase())) return *words;
    const TimedWords* words = words_of(directions_timed, point.direction());
    return words ? *words : directions_timed[0];
}

std::string point_name(const Point& point) { return named(point, false); }

std::string point_heading(const Point& point) { return named(point, true); }

std::string short_name(const Point& point) { return joined(parts_of(point, in_short(point, false), said), " "); }

std::string placed_name(const Point& point) { return joined(parts_of(point, in_short(point, true), said), " "); }

std::string sentence_name(const Point& point) {
    std::vector<std::string> parts = parts_of(point, in_short(point, false), said_in_full);
    if (parts.size() < 2) return joined(parts, "");
    const std::string model = parts.front();
    parts.erase(parts.begin());
    return fmt::format("{} at {}", model, joined(parts, ", "));
}

}  // namespace kbench
