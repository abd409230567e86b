// Each quantity is an interval of the points that it names; its text has as many decimals as its value needs.
#include "analysis/study/figures.h"

#include <algorithm>
#include <utility>

#include "analysis/facts/point_facts.h"
#include "analysis/result/frames.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// With as many decimals as the value shows; a range where there is no interval, and the value alone where both ends
/// are one sample's.
std::string text_of(const Interval& figure, bool has_interval, std::string_view unit) {
    const int decimals = decimals_for(figure.value);
    const std::string suffix = unit.empty() ? "" : fmt::format(" {}", unit);
    std::string text = fmt::format("{:.{}f}{}", figure.value, decimals, suffix);
    if (figure.low == figure.high) return text;
    return text + (has_interval ? fmt::format(" [{:.{}f}, {:.{}f}]", figure.low, decimals, figure.high, decimals)
                                : fmt::format(" ({:.{}f} to {:.{}f} at the extremes)", figure.low, decimals,
                                              figure.high, decimals));
}

StudyFigure study_figure(std::string quantity, std::vector<std::size_t> points, const Interval& value,
                         bool has_interval, std::string_view unit = "", std::string part = "") {
    return {std::move(quantity), std::move(points),
            std::move(part),     value,
            has_interval,        text_of(value, has_interval, unit)};
}

const Summary& summary_of(PointAt at) { return at.point.end_to_end->latency.summary_ms; }

/// What `own` has of itself and `rest`, in percent.
Interval share_of(const Interval& own, const Interval& rest) {
    const auto share = [](double part, double others) { return part + others > 0 ? 100 * part / (part + others) : 0; };
    return {share(own.value, rest.value), share(own.low, rest.high), share(own.high, rest.low)};
}

/// `factor` times the first point's latency over the second's.
StudyFigure latency_quotient(std::string quantity, PointAt first, PointAt second, double factor) {
    const Summary &over = summary_of(first), &under = summary_of(second);
    return study_figure(std::move(quantity), {first.index, second.index},
                        scaled(quotient(Interval::of(over), Interval::of(under)), factor),
                        over.has_interval() && under.has_interval());
}

}  // namespace

StudyFigure latency(PointAt at) {
    const Summary& ms = summary_of(at);
    return study_figure("latency_ms", {at.index}, Interval::of(ms), ms.has_interval(), "ms");
}

StudyFigure throughput(PointAt at) {
    const Summary& ms = summary_of(at);
    const Interval per_s = quotient(Interval::exactly(1e3 * static_cast<double>(at.point.batch())), Interval::of(ms));
    return study_figure("sequences_per_s", {at.index}, per_s, ms.has_interval(),
                        fmt::format("{}s/s", sequence_word(at.point)));
}

StudyFigure layer_share(PointAt at, const std::string& layer) {
    Interval own, rest;
    bool known = true;
    for (const StepResult& step : at.point.steps) {
        known = known && step.time_us && step.time_us->has_interval();
        (layer_group(step.layer) == layer ? own : rest) += device_interval(step);
    }
    return study_figure("layer_share", {at.index}, share_of(own, rest), known, "%", layer);
}

StudyFigure recoverable_time(std::size_t index, const StudyLayer& layer, bool has_interval) {
    return study_figure("recoverable_ms", {index}, scaled(*layer.recoverable_us, 1e-3), has_interval, "ms", layer.name);
}

StudyFigure backward_ratio(const DirectionPair& pair, std::size_t index) {
    return study_figure("backward_ratio", {index}, *pair.time_ratio(),
                        pair.forward.has_interval && pair.backward.has_interval, "", pair.name);
}

StudyFigure backward_flop_ratio(const Directions& directions, std::size_t index) {
    return study_figure("backward_flop_ratio", {index}, Interval::exactly(*directions.whole.flop_ratio()), true);
}

StudyFigure part_share(const Directions& directions, std::size_t index, const std::string& part) {
    const DirectionWork& own = part == "backward" ? directions.whole.backward : directions.optimizer;
    Interval rest;
    for (const DirectionWork* work :
         {&directions.whole.forward, &directions.whole.backward, &directions.loss, &directions.optimizer})
        if (work != &own && work->time_us) rest += *work->time_us;
    return study_figure("part_share", {index}, share_of(own.time_us.value_or(Interval{}), rest),
                        directions.whole.backward.has_interval, "%", part);
}

StudyFigure gap_share(std::size_t index, double share) {
    return study_figure("gap_share", {index}, Interval::exactly(100 * share), true, "%");
}

StudyFigure roof_ratio(const Roof& first, std::size_t first_index, const Roof& second, std::size_t second_index) {
    const auto rate = [](const Roof& roof) {
        return roof.low_per_s > 0 ? Interval{roof.per_s, roof.low_per_s, roof.high_per_s}
                                  : Interval::exactly(roof.per_s);
    };
    return study_figure("roof_ratio", {first_index, second_index}, quotient(rate(second), rate(first)), true);
}

StudyFigure energy_ratio(PointAt first, PointAt second) {
    const double before = *value_of(first.point.end_to_end->energy_per_sequence_j),
                 after = *value_of(second.point.end_to_end->energy_per_sequence_j);
    return study_figure("energy_ratio", {first.index, second.index}, Interval::exactly(after / before), true);
}

StudyFigure throughput_ratio(PointAt first, PointAt second) {
    const double more = static_cast<double>(second.point.batch()) / static_cast<double>(first.point.batch());
    return latency_quotient("throughput_ratio", first, second, more);
}

StudyFigure latency_ratio(PointAt first, PointAt second) { return latency_quotient("latency_ratio", first, second, 1); }

}  // namespace kbench
