// Results are joined where their options agree; their points stand in the order of a sweep.
#include "analysis/result/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/result/point_name.h"
#include "analysis/result/result_json.h"
#include "kbench/error.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

using Named = std::pair<std::string, std::string>;

std::string sms_used(const Environment& e) {
    if (!e.gpu || !e.gpu->multiprocessors_of_device) return "all";
    return fmt::format("{} of {}", e.gpu->multiprocessors, *e.gpu->multiprocessors_of_device);
}

std::string quota_of(const Environment& e) {
    return e.host.cpu_quota ? fmt::format("{:.3g} CPUs", *e.host.cpu_quota) : "";
}

/// What must be equal, in the order in which a difference is told.
std::vector<Named> identity(const Result& result, SameDevice device) {
    const Environment& e = result.environment;
    std::vector<Named> parts{{"kbench", e.kbench_version},
                             {"revision", e.git_revision},
                             {"build type", e.build_type},
                             {"compiler", e.compiler},
                             {"CPU", e.host.cpu},
                             {"number of threads", std::to_string(e.host.threads)},
                             {"quota of CPU time", quota_of(e)},
                             {"GPU", e.gpu ? e.gpu->name : ""},
                             {"number of SMs", sms_used(e)},
                             {"GPU's driver", e.gpu ? e.gpu->driver : ""},
                             {"CUDA runtime", e.gpu ? e.gpu->cuda_runtime : ""}};
    if (device == SameDevice::card) parts.emplace_back("GPU's UUID", e.gpu ? e.gpu->uuid : "");
    return parts;
}

std::string quoted(const std::string& text) { return text.empty() ? "not there" : text; }

std::string told(const std::string& what, const std::string& mine, const std::string& here, const std::string& theirs,
                 const std::string& there) {
    return fmt::format("{} is {} in {} and {} in {}", what, quoted(mine), here, quoted(theirs), there);
}

/// The first entry in which two maps differ.
std::string map_difference(const std::string& what, const std::map<std::string, std::string>& a,
                           const std::map<std::string, std::string>& b, const std::string& here,
                           const std::string& there) {
    std::set<std::string> keys;
    for (const auto* map : {&a, &b})
        for (const auto& [key, value] : *map) keys.insert(key);
    const auto at = [](const std::map<std::string, std::string>& map, const std::string& key) {
        const auto found = map.find(key);
        return found == map.end() ? std::string() : found->second;
    };
    for (const std::string& key : keys)
        if (at(a, key) != at(b, key)) return told(fmt::format("{} {}", what, key), at(a, key), here, at(b, key), there);
    return {};
}

/// What names a point within a dataset, in the order of points; its data are all else.
auto key_of(const Point& p) {
    std::vector<std::pair<bool, std::optional<AxisValue>>> place;
    for (const Axis* axis : axes_in_order())
        place.emplace_back(axis->takes_max && p.batch_is_max, sort_key(*axis, p.axes));
    return std::tuple(std::move(place), p.seed, p.weights);
}

/// The point's data as they are written, for comparison.
nlohmann::json data_of(const Point& point) {
    Result one;
    one.points = {point};
    return to_json(one)["points"][0];
}

/// What several parts of a study planned: of a point that one of them left out the others say whether it was measured.
void join_plans(std::optional<StudyPlan>& into, const std::optional<StudyPlan>& part) {
    if (!part) return;
    if (!into) {
        into = part;
        return;
    }
    if (into->budget_s && part->budget_s) into->budget_s = std::max(*into->budget_s, *part->budget_s);
    for (const PlannedPoint& planned : part->points) {
        const auto same = std::ranges::find_if(into->points, [&](const PlannedPoint& known) {
            return known.axes == planned.axes && known.batch_is_max == planned.batch_is_max;
        });
        if (same == into->points.end())
            into->points.push_back(planned);
        else if (planned.left_out.empty())
            same->left_out.clear();
    }
}

}  // namespace

void add_once(std::vector<std::string>& list, std::span<const std::string> more) {
    for (const std::string& text : more) add_once(list, text);
}

std::string difference(const Result& a, const Result& b, SameDevice device, const std::string& here,
                       const std::string& there) {
    if (a.options.empty() != b.options.empty())
        return fmt::format("{} records no options (a schema before kbench.result/4), {} does",
                           a.options.empty() ? here : there, a.options.empty() ? there : here);
    const std::vector<Named> mine = identity(a, device), theirs = identity(b, device);
    for (std::size_t i = 0; i < mine.size(); ++i)
        if (mine[i].second != theirs[i].second)
            return told(mine[i].first, mine[i].second, here, theirs[i].second, there);
    const std::string library =
        map_difference("library", a.environment.libraries, b.environment.libraries, here, there);
    return library.empty() ? map_difference("option", a.options, b.options, here, there) : library;
}

void refuse_repeated_points(const ResultFile& file) {
    std::set<decltype(key_of(std::declval<const Point&>()))> seen;
    for (const Point& point : file.result.points)
        if (!seen.insert(key_of(point)).second)
            throw UsageError(fmt::format("{}: holds {} twice", file.path, point_name(point)));
}

Result merge_results(const std::vector<ResultFile>& files) {
    if (files.empty()) throw UsageError("no results to join");
    Result merged;
    const ResultFile& first = files.front();
    merged.environment = first.result.environment;
    merged.options = first.result.options;
    merged.configuration = first.result.configuration;  // equal options are of one configuration
    merged.ceilings = first.result.ceilings;
    std::vector<std::pair<const Point*, const std::string*>> points;
    for (const ResultFile& file : files) {
        if (const std::string what = difference(first.result, file.result, SameDevice::kind, first.path, file.path);
            !what.empty())
            throw UsageError(fmt::format("cannot be joined: {}", what));
        if (merged.ceilings.ceilings.empty()) merged.ceilings = file.result.ceilings;
        merged.environment.started_at = std::min(merged.environment.started_at, file.result.environment.started_at);
        add_once(merged.warnings, file.result.warnings);
        join_plans(merged.study, file.result.study);
        for (const Point& point : file.result.points) points.emplace_back(&point, &file.path);
    }
    std::ranges::stable_sort(points, [](const auto& a, const auto& b) { return key_of(*a.first) < key_of(*b.first); });
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto& [point, path] = points[i];
        if (i == 0 || key_of(*point) != key_of(*points[i - 1].first))
            merged.points.push_back(*point);
        else if (data_of(*point) != data_of(*points[i - 1].first))
            throw UsageError(fmt::format("cannot be joined: {} has other data in {} than in {}", point_name(*point),
                                         *path, *points[i - 1].second));
    }
    return merged;
}

}  // namespace kbench
