// The quantities of a study's sentences, and sentences that carry them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "analysis/machine/ceilings.h"
#include "analysis/study/answers.h"

namespace kbench {

/// A point and its place in the result.
struct PointAt {
    const Point& point;
    std::size_t index;
};

/// latency_ms: the end-to-end median of a point.
StudyFigure latency(PointAt at);
/// sequences_per_s: the batch over that.
StudyFigure throughput(PointAt at);
/// layer_share: steps of a layer of all blocks over all steps, by their time on the device.
StudyFigure layer_share(PointAt at, const std::string& layer);
/// recoverable_ms: the time of a layer's steps above the longest roof time of each.
StudyFigure recoverable_time(std::size_t index, const StudyLayer& layer, bool has_interval);
/// backward_ratio: the backward's steps over the forward's, of a training point or of one op kind in it, by their times
/// on the device.
StudyFigure backward_ratio(const DirectionPair& pair, std::size_t index);
/// backward_flop_ratio: the same of the FLOPs of the cost model.
StudyFigure backward_flop_ratio(const Directions& directions, std::size_t index);
/// part_share: "backward" or "optimizer" of a training point's step, by the steps' time on the device.
StudyFigure part_share(const Directions& directions, std::size_t index, const std::string& part);
/// gap_share: gaps between kernels over the end-to-end time.
StudyFigure gap_share(std::size_t index, double share);
/// roof_ratio: the second point's roof for products of matrices over the first's, with the intervals of both.
StudyFigure roof_ratio(const Roof& first, std::size_t first_index, const Roof& second, std::size_t second_index);
/// energy_ratio: joules a sequence of the second point over those of the first.
StudyFigure energy_ratio(PointAt first, PointAt second);
/// throughput_ratio: sequences/s of the second point over those of the first.
StudyFigure throughput_ratio(PointAt first, PointAt second);
/// latency_ratio: the first point's latency over the second's: how many times as fast the second is.
StudyFigure latency_ratio(PointAt first, PointAt second);

}  // namespace kbench

/// A figure stands in a sentence as its text.
template <>
struct fmt::formatter<kbench::StudyFigure> : fmt::formatter<std::string> {
    auto format(const kbench::StudyFigure& figure, fmt::format_context& context) const {
        return fmt::formatter<std::string>::format(figure.text, context);
    }
};

namespace kbench {

/// A sentence of words and figures, which it carries: told("It takes {}.", latency(at)).
template <class... Parts>
StudyFinding told(fmt::format_string<const Parts&...> pattern, const Parts&... parts) {
    StudyFinding finding{fmt::format(pattern, parts...)};
    const auto keep = [&](const auto& part) {
        if constexpr (std::is_same_v<decltype(part), const StudyFigure&>) finding.figures.push_back(part);
    };
    (keep(parts), ...);
    return finding;
}

}  // namespace kbench
