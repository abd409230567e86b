// Writes each finished point of a sweep to a file of its own, and finds it again.
#include "bench/measure/store/point_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/result/merge.h"
#include "analysis/result/result_json.h"
#include "bench/measure/store/result_files.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// What holds for the whole run is compared with its options.
bool is_point_of(const PointSpec& spec, const Result& one) {
    if (one.points.size() != 1) return false;
    const Point& point = one.points.front();
    return std::ranges::all_of(axes(), [&](const Axis& axis) {
        const AxisValue *asked = spec.axes.find(axis.name), *found = point.axes.find(axis.name);
        if (axis.order == 0) return true;
        if (axis.takes_max && point.batch_is_max) return asked && *asked == AxisValue(max_batch);
        return asked == nullptr || (found && *found == *asked);
    });
}

/// The file's result; nothing, and the reason in `why`, where it is not a result of this point.
std::optional<Result> read_point(const fs::path& path, const PointSpec& spec, std::string& why) {
    try {
        ResultFile file = read_result_file(path);
        if (is_point_of(spec, file.result)) return std::move(file.result);
        why = fmt::format("{}: does not hold the point {}", path.string(), spec.name());
    } catch (const UsageError& error) {
        why = error.what();
    }
    return std::nullopt;
}

}  // namespace

PointStore::PointStore(const fs::path& out) : directory_(out / points_folder) {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error) throw UsageError(fmt::format("--out {}: {}", out.string(), error.message()));
    remove_abandoned_files(directory_);
}

void PointStore::save(const PointSpec& spec, const Result& one) const {
    write_file_atomically(directory_ / (spec.name() + ".json"), to_text(one));
}

FinishedPoints PointStore::finished(const std::vector<PointSpec>& specs, const Result& mine,
                                    std::vector<std::string>& warnings) const {
    FinishedPoints found;
    for (const fs::path& path : point_files(directory_)) {
        const std::string name = path.stem().string();
        const auto spec = std::ranges::find(specs, name, &PointSpec::name);
        if (spec == specs.end())
            throw UsageError(fmt::format(
                "--resume: {} holds a point that this sweep has not; name all values of the earlier run, or another directory",
                path.string()));
        std::string why;
        std::optional<Result> one = read_point(path, *spec, why);
        if (!one) {
            put_aside(path);  // the point is measured and written again in any case
            warnings.push_back(fmt::format("{}; the point was measured again", why));
            continue;
        }
        if (const std::string what = difference(*one, mine, SameDevice::card, path.string(), "this run"); !what.empty())
            throw UsageError(fmt::format("--resume: {}", what));
        if (one->points.front().status != PointStatus::failed) found.emplace(name, std::move(*one));
    }
    return found;
}

bool holds_points(const fs::path& out) { return !point_files(out / points_folder).empty(); }

}  // namespace kbench
