// The order of a sweep's points; see sweep.h.
#include "bench/measure/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

#include "models/base/error.h"

namespace kbench {
namespace {

constexpr std::array axes{SweepAxis::seq, SweepAxis::batch, SweepAxis::precision};

/// Axes that advance together.
struct AxisGroup {
    std::vector<SweepAxis> axes;
    std::size_t size = 0;
};

/// Slowest first; zipped axes stand where the slowest of them would.
std::vector<AxisGroup> group_axes(const std::array<std::size_t, axes.size()>& sizes,
                                  const std::vector<SweepAxis>& zip) {
    std::vector<AxisGroup> groups;
    std::optional<std::size_t> zipped;
    for (const SweepAxis axis : axes) {
        const std::size_t size = sizes[static_cast<std::size_t>(axis)];
        const bool is_zipped = std::ranges::find(zip, axis) != zip.end();
        if (!is_zipped || !zipped) {
            if (is_zipped) zipped = groups.size();
            groups.push_back({{axis}, size});
            continue;
        }
        AxisGroup& group = groups[*zipped];
        if (group.size != size)
            throw UsageError(
                fmt::format("--zip: --{} has {} values and --{} {}; lists that go in step are equally long",
                            name(group.axes.front()), group.size, name(axis), size));
        group.axes.push_back(axis);
    }
    return groups;
}

}  // namespace

std::string PointSpec::name() const {
    return fmt::format("seq{}-batch{}-{}{}", seq, batch == max_batch ? "max" : std::to_string(batch),
                       kbench::name(precision), repeat > 1 ? fmt::format("-repeat{}", repeat) : "");
}

std::vector<PointSpec> sweep_points(const SweepOptions& sweep, std::int64_t n_ctx) {
    const std::vector<std::int64_t> seqs = sweep.seqs.empty() ? std::vector{n_ctx} : sweep.seqs;
    const std::vector<AxisGroup> groups =
        group_axes({seqs.size(), sweep.batches.size(), sweep.precisions.size()}, sweep.zip);
    const std::size_t round = std::accumulate(groups.begin(), groups.end(), std::size_t{1},
                                              [](std::size_t n, const AxisGroup& group) { return n * group.size; });
    std::vector<PointSpec> points;
    for (int repeat = 1; repeat <= sweep.repeats; ++repeat) {
        if (sweep.only_repeat != 0 && repeat != sweep.only_repeat) continue;
        for (std::size_t i = 0; i < round; ++i) {
            std::array<std::size_t, axes.size()> at{};
            std::size_t rest = i;
            for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
                for (const SweepAxis axis : group->axes) at[static_cast<std::size_t>(axis)] = rest % group->size;
                rest /= group->size;
            }
            points.push_back({sweep.precisions[at[2]], seqs[at[0]], sweep.batches[at[1]], repeat});
        }
    }
    std::set<std::string> names;
    for (const PointSpec& point : points)
        if (!names.insert(point.name()).second)
            throw UsageError(
                fmt::format("the point {} is asked for twice; --repeat N measures all points N times", point.name()));
    return points;
}

}  // namespace kbench
