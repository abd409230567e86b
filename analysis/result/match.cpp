// Points by key; steps by union-find over the ops that they compute.
#include "analysis/result/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include "kbench/error.h"
#include "models/base/lists.h"

namespace kbench {

bool is_measured(const Point& point) { return point.status == PointStatus::done && point.end_to_end.has_value(); }

namespace {

/// What tells compared points apart, in the order of a title: first what every title has.
std::vector<const Axis*> title_axes() {
    std::vector<const Axis*> list;
    std::ranges::copy_if(axes_in_tables(), std::back_inserter(list),
                         [](const Axis* axis) { return axis->role != AxisRole::where; });
    std::ranges::stable_partition(list, &Axis::always_told);
    return list;
}

/// The distinct values of an axis.
std::vector<std::string> values(const Result& result, const Axis& axis) {
    std::vector<std::string> distinct;
    for (const Point& point : result.points)
        if (const AxisValue* value = point.axes.find(axis.name)) add_once(distinct, text_of(*value));
    return distinct;
}

/// "1,4", and of many the first few: microbenchmarks may have hundreds of names.
std::string listed(std::vector<std::string> values) {
    constexpr std::size_t most = 4;
    const std::size_t all = values.size();
    values.resize(std::min(all, most));
    return fmt::format("{}{}", fmt::join(values, ","), all > most ? fmt::format(" (and {} more)", all - most) : "");
}

/// What every model has is named in any case.
std::string described(const Result& result, const Result& other) {
    std::vector<std::string> parts;
    for (const Axis* axis : title_axes()) {
        const auto mine = values(result, *axis);
        const bool is_named = (axis->always_told && !axis->of_model) || mine != values(other, *axis);
        if (is_named && !mine.empty()) parts.push_back(said(*axis, listed(mine)));
    }
    return joined(parts, " ");
}

std::string why_unmeasured(const NamedResult& run, const Point& point) {
    return fmt::format("{} was {} in {}{}{}", match_title(point), name(point.status), run.path,
                       point.reason.empty() ? "" : ": ", point.reason);
}

[[noreturn]] void refuse(const NamedResult& a, const NamedResult& b) {
    for (const NamedResult* run : {&a, &b})
        if (run->result.points.empty()) throw UsageError(fmt::format("{} holds no points", run->path));
    for (const Point& mine : a.result.points)
        for (const Point& theirs : b.result.points)
            if (is_match(mine, theirs))
                throw UsageError(fmt::format("no point was measured in both: {}",
                                             is_measured(mine) ? why_unmeasured(b, theirs) : why_unmeasured(a, mine)));
    throw UsageError(fmt::format("no point in common: {} is {}; {} is {}", a.path, described(a.result, b.result),
                                 b.path, described(b.result, a.result)));
}

/// Sets of nodes that grow together (Tarjan, J. ACM 22(2), 1975), without ranks: plans are short.
class Sets {
  public:
    explicit Sets(std::size_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
    std::size_t root(std::size_t node) {
        while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
        return node;
    }
    void join(std::size_t one, std::size_t other) { parent_[root(other)] = root(one); }

  private:
    std::vector<std::size_t> parent_;
};

/// The ops of a step; its own name where a file lists none.
std::vector<std::string> ops_of(const StepResult& step) {
    return step.absorbs.empty() ? std::vector{fmt::format("{}:{}", step.layer, step.op)} : step.absorbs;
}

/// The direction of an entry in StepResult::absorbs: a step that a product names is its dgrad or wgrad, and what goes
/// along with it is its own backward.
Direction direction_of(const StepResult& step, const std::string& op) {
    const bool is_named = op.substr(op.rfind(':') + 1) == step.op;
    return is_named || step.direction == Direction::fwd ? step.direction : Direction::bwd;
}

/// An op's name, its direction and how many of the same came before it.
using OpKey = std::tuple<std::string, Direction, int>;

}  // namespace

bool is_match(const Point& a, const Point& b) {
    const auto number = [](const Point& point) { return point.axes.count("repeat").value_or(1); };
    return first_difference(a, b) == nullptr && number(a) == number(b);
}

bool is_planned(const PlannedPoint& planned, const Point& point) {
    if (planned.batch_is_max != point.batch_is_max) return false;
    return std::ranges::all_of(axes(), [&](const Axis& axis) {
        const AxisValue *asked = planned.axes.find(axis.name), *found = point.axes.find(axis.name);
        return axis.order == 0 || asked == nullptr || (found != nullptr && *found == *asked);
    });
}

const Axis* first_difference(const Point& a, const Point& b) {
    for (const Axis& axis : axes()) {
        if (axis.role != AxisRole::what) continue;
        const AxisValue *mine = a.axes.find(axis.name), *theirs = b.axes.find(axis.name);
        const bool differs =
            mine && theirs ? *mine != *theirs : axis.usual && !(a.axes.is_usual(axis) && b.axes.is_usual(axis));
        if (differs) return &axis;
    }
    return nullptr;
}

std::vector<std::pair<const Axis*, AxisValue>> told_axes(const Point& point) {
    std::vector<std::pair<const Axis*, AxisValue>> told;
    for (const Axis* axis : title_axes()) {
        const bool is_told = axis->always_told || axis->order == 0 || axis->beside_model || !point.axes.is_usual(*axis);
        if (const AxisValue* value = point.axes.find(axis->name); value && is_told) told.emplace_back(axis, *value);
    }
    return told;
}

std::string match_title(const Point& point) {
    std::vector<std::string> parts;
    for (const auto& [axis, value] : told_axes(point))
        if (axis->always_told || !point.axes.is_usual(*axis)) parts.push_back(said(*axis, value));
    return joined(parts, " ");
}

std::vector<std::string> short_titles(const std::vector<const Point*>& points) {
    std::vector<std::string> titles(points.size());
    for (const Axis* axis : title_axes()) {
        const auto text = [axis](const Point* point) {
            const AxisValue* value = point->axes.find(axis->name);
            return value ? said(*axis, *value) : std::string();
        };
        if (std::ranges::all_of(points, [&](const Point* point) { return text(point) == text(points.front()); }))
            continue;
        for (std::size_t i = 0; i < points.size(); ++i)
            if (const std::string value = text(points[i]); !value.empty())
                titles[i] += (titles[i].empty() ? "" : " ") + value;
    }
    return titles;
}

std::vector<std::pair<const Point*, const Point*>> match_points(const NamedResult& a, const NamedResult& b) {
    std::vector<std::pair<const Point*, const Point*>> matches;
    for (const Point& mine : a.result.points) {
        if (!is_measured(mine)) continue;
        const auto found = std::ranges::find_if(
            b.result.points, [&](const Point& theirs) { return is_measured(theirs) && is_match(mine, theirs); });
        if (found != b.result.points.end()) matches.emplace_back(&mine, &*found);
    }
    if (matches.empty()) refuse(a, b);
    return matches;
}

std::vector<StepMatch> match_steps(const Point& a, const Point& b) {
    const std::size_t first_of_b = a.steps.size();
    Sets sets(first_of_b + b.steps.size());
    std::map<OpKey, std::size_t> owner;
    const auto add = [&](const std::vector<StepResult>& steps, std::size_t first) {
        std::map<std::pair<std::string, Direction>, int> seen;
        for (std::size_t s = 0; s < steps.size(); ++s)
            for (const std::string& op : ops_of(steps[s])) {
                const Direction direction = direction_of(steps[s], op);
                const int before = seen[{op, direction}]++;
                const auto [found, is_new] = owner.try_emplace({op, direction, before}, first + s);
                if (!is_new) sets.join(found->second, first + s);
            }
    };
    add(a.steps, 0);
    add(b.steps, first_of_b);

    std::vector<StepMatch> matches;
    std::map<std::size_t, std::size_t> index;
    for (std::size_t node = 0; node < first_of_b + b.steps.size(); ++node) {
        const auto [found, is_new] = index.try_emplace(sets.root(node), matches.size());
        if (is_new) matches.emplace_back();
        StepMatch& match = matches[found->second];
        if (node < first_of_b)
            match.a.push_back(&a.steps[node]);
        else
            match.b.push_back(&b.steps[node - first_of_b]);
    }
    return matches;
}

}  // namespace kbench
