// Points by key; steps by union-find over the ops that they compute.
#include "analysis/result/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include "models/base/error.h"

namespace kbench {
namespace {

auto key_of(const Point& point) {
    return std::tie(point.model, point.batch, point.seq, point.precision, point.attention, point.direction,
                    point.repeat);
}

bool is_measured(const Point& point) { return point.status == PointStatus::done && point.end_to_end.has_value(); }

/// What tells points apart, each as a person says it. The first three are always named.
struct Axis {
    std::string_view before;
    std::string (*value)(const Point&);
};
constexpr Axis axes[] = {
    {"", [](const Point& p) { return p.model; }},
    {"", [](const Point& p) { return std::string(name(p.precision)); }},
    {"batch ", [](const Point& p) { return std::to_string(p.batch); }},
    {"seq ", [](const Point& p) { return std::to_string(p.seq); }},
    {"attention ", [](const Point& p) { return p.attention; }},
    {"direction ", [](const Point& p) { return p.direction; }},
    {"repeat ", [](const Point& p) { return std::to_string(p.repeat); }},
};
constexpr std::size_t always_named = 3;

/// The distinct values of an axis.
std::vector<std::string> values(const Result& result, const Axis& axis) {
    std::vector<std::string> distinct;
    for (const Point& point : result.points)
        if (std::ranges::find(distinct, axis.value(point)) == distinct.end()) distinct.push_back(axis.value(point));
    return distinct;
}

/// "1,4", and of many the first few: microbenchmarks may have hundreds of names.
std::string listed(std::vector<std::string> values) {
    constexpr std::size_t most = 4;
    const std::size_t all = values.size();
    values.resize(std::min(all, most));
    return fmt::format("{}{}", fmt::join(values, ","), all > most ? fmt::format(" (and {} more)", all - most) : "");
}

std::string described(const Result& result, const Result& other) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::size(axes); ++i)
        if (const auto mine = values(result, axes[i]); i < always_named || mine != values(other, axes[i]))
            parts.push_back(fmt::format("{}{}", axes[i].before, listed(mine)));
    return fmt::format("{}", fmt::join(parts, " "));
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
            if (key_of(mine) == key_of(theirs))
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

/// An op's name, its direction and how many of the same came before it.
using OpKey = std::tuple<std::string, Direction, int>;

}  // namespace

std::string match_title(const Point& point) {
    return fmt::format("{} {} batch {} seq {}{}{}{}", point.model, name(point.precision), point.batch, point.seq,
                       point.attention == "fused" ? "" : fmt::format(" attention {}", point.attention),
                       point.direction == "fwd" ? "" : fmt::format(" {}", point.direction),
                       point.repeat == 1 ? "" : fmt::format(" repeat {}", point.repeat));
}

std::vector<std::string> short_titles(const std::vector<const Point*>& points) {
    std::vector<std::string> titles(points.size());
    for (const Axis& axis : axes) {
        const auto differs = [&](const Point* point) { return axis.value(*point) != axis.value(*points.front()); };
        if (std::ranges::none_of(points, differs)) continue;
        for (std::size_t i = 0; i < points.size(); ++i)
            titles[i] += fmt::format("{}{}{}", titles[i].empty() ? "" : " ", axis.before, axis.value(*points[i]));
    }
    return titles;
}

std::vector<std::pair<const Point*, const Point*>> match_points(const NamedResult& a, const NamedResult& b) {
    std::vector<std::pair<const Point*, const Point*>> matches;
    for (const Point& mine : a.result.points) {
        if (!is_measured(mine)) continue;
        const auto found = std::ranges::find_if(b.result.points, [&](const Point& theirs) {
            return is_measured(theirs) && key_of(theirs) == key_of(mine);
        });
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
                const int before = seen[{op, steps[s].direction}]++;
                const auto [found, is_new] = owner.try_emplace({op, steps[s].direction, before}, first + s);
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
