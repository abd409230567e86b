// Finds how long a time step takes along a series, and puts its growth in a sentence.
#include "analysis/explain/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/result/match.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// The axes of a point but for `along` and for what follows from it: lengths are drawn anew for a batch and for frames.
AxisValues beside(const Point& point, std::string_view along) {
    AxisValues axes = point.axes;
    axes.erase(along);
    axes.erase("repeat");
    axes.erase("useful_frames");
    if (const std::string lengths = axes.text("lengths"); !lengths.empty())
        axes.set("lengths", lengths.substr(0, lengths.find(' ')));
    return axes;
}

/// Positions of finished points by series, each in the order of the axis; of repeats the first.
std::vector<std::vector<std::size_t>> series_along(std::string_view along, std::span<const Point> points) {
    std::vector<AxisValues> keys;
    std::vector<std::vector<std::size_t>> series;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        if (point.status != PointStatus::done || !point.end_to_end || !point.axes.count(along)) continue;
        const AxisValues key = beside(point, along);
        const auto found = std::ranges::find(keys, key) - keys.begin();
        if (found == std::ssize(keys)) {
            keys.push_back(key);
            series.emplace_back();
        }
        std::vector<std::size_t>& own = series[static_cast<std::size_t>(found)];
        const auto is_same = [&](std::size_t other) {
            return points[other].axes.count(along) == point.axes.count(along);
        };
        if (std::ranges::none_of(own, is_same)) own.push_back(i);
    }
    for (std::vector<std::size_t>& own : series)
        std::ranges::sort(own, {}, [&](std::size_t i) { return points[i].axes.count(along).value(); });
    return series;
}

/// Titles of series by their first points.
template <class Series>
void name_series(std::vector<Series>& series, const std::vector<const Point*>& firsts) {
    const std::vector<std::string> titles = short_titles(firsts);
    for (std::size_t i = 0; i < series.size(); ++i) series[i].title = series.size() > 1 ? titles.at(i) : "";
}

/// "latency-bound up to batch 8"; empty where no batch is.
std::string latency_text(const std::vector<BatchPoint>& points) {
    const auto is_latency = [](const BatchPoint& point) { return point.steps.bound == Bound::latency; };
    const auto beyond = std::ranges::find_if_not(points, is_latency);
    if (beyond == points.begin()) return "";
    if (beyond == points.end()) return "; time steps are latency-bound at each of these";
    return fmt::format("; time steps are latency-bound up to batch {}, and at {} {}", std::prev(beyond)->batch,
                       beyond->batch,
                       beyond->steps.bound == Bound::not_identifiable ? "their bottleneck is unknown"
                                                                      : fmt::format("{}", name(beyond->steps.bound)));
}

std::string finding_of(const std::vector<BatchPoint>& points) {
    const BatchPoint &first = points.front(), &last = points.back();
    return fmt::format("{} times the sequences (batch {} to {}) take {} times as long a time step{}.",
                       significant(static_cast<double>(last.batch) / static_cast<double>(first.batch)), first.batch,
                       last.batch, significant(last.steps.us() / first.steps.us()), latency_text(points));
}

}  // namespace

FramesFit fit_line(std::span<const FramesSeries::Point> points) {
    double frames = 0, ms = 0, above = 0, below = 0;
    const double n = static_cast<double>(points.size());
    for (const FramesSeries::Point& point : points) {
        frames += static_cast<double>(point.frames) / n;
        ms += point.ms / n;
    }
    for (const FramesSeries::Point& point : points) {
        const double from_mean = static_cast<double>(point.frames) - frames;
        above += from_mean * (point.ms - ms);
        below += from_mean * from_mean;
    }
    FramesFit fit;
    fit.ms_per_frame = above / below;
    fit.constant_ms = ms - fit.ms_per_frame * frames;
    for (const FramesSeries::Point& point : points) {
        const double line = fit.constant_ms + fit.ms_per_frame * static_cast<double>(point.frames);
        const double residual = (point.ms - line) / point.ms;
        if (std::abs(residual) > std::abs(fit.worst_residual)) fit.worst_residual = residual;
    }
    return fit;
}

std::vector<BatchSeries> batch_series(const ExplainedResult& explained) {
    std::vector<BatchSeries> all;
    std::vector<const Point*> firsts;
    for (const std::vector<std::size_t>& positions : series_along("batch", explained.points())) {
        BatchSeries series;
        const Point* first = nullptr;
        for (const std::size_t i : positions) {
            const Point& point = explained.points()[i];
            const std::optional<SerialChain> steps = together(explained.of(i).time_steps);
            if (!steps || !explained.of(i).concludes()) continue;
            if (first == nullptr) first = &point;
            series.points.push_back({point.batch(), *steps});
        }
        if (series.points.size() < 2) continue;
        series.finding = finding_of(series.points);
        all.push_back(std::move(series));
        firsts.push_back(first);
    }
    name_series(all, firsts);
    return all;
}

std::vector<FramesSeries> frames_series(std::span<const Point> points) {
    std::vector<FramesSeries> all;
    std::vector<const Point*> firsts;
    for (const std::vector<std::size_t>& positions : series_along("frames", points)) {
        FramesSeries series;
        for (const std::size_t i : positions)
            if (const double ms = points[i].end_to_end->latency.summary_ms.median; ms > 0)
                series.points.push_back({points[i].axes.count("frames").value(), ms, 0});
        if (series.points.size() < 3) continue;
        series.fit = fit_line(series.points);
        for (FramesSeries::Point& point : series.points)
            point.residual_ms =
                point.ms - series.fit.constant_ms - series.fit.ms_per_frame * static_cast<double>(point.frames);
        all.push_back(std::move(series));
        firsts.push_back(&points[positions.front()]);
    }
    name_series(all, firsts);
    return all;
}

}  // namespace kbench
