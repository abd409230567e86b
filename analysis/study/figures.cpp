// See figures.h.
#include "analysis/study/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/explain/breakdown.h"
#include "analysis/result/frames.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// With as many decimals as the value shows; a range where there is no interval, and the value alone where both ends
/// are one sample's.
std::string told(const Interval& figure, bool has_interval, std::string_view unit) {
    const int decimals = decimals_for(figure.value);
    const std::string suffix = unit.empty() ? "" : fmt::format(" {}", unit);
    std::string text = fmt::format("{:.{}f}{}", figure.value, decimals, suffix);
    if (figure.low == figure.high) return text;
    return text + (has_interval
                       ? fmt::format(" [{:.{}f}, {:.{}f}]", figure.low, decimals, figure.high, decimals)
                       : fmt::format(" (range {:.{}f} to {:.{}f})", figure.low, decimals, figure.high, decimals));
}

StudyFigure made(std::string quantity, std::vector<std::size_t> points, std::string part, const Interval& value,
                 bool has_interval, std::string_view unit) {
    StudyFigure figure{std::move(quantity), std::move(points), std::move(part), value, has_interval, {}};
    figure.text = told(value, has_interval, unit);
    return figure;
}

const Summary& summary_of(const Point& point) { return point.end_to_end->latency.summary_ms; }

/// Of a training step, the parts that take its time.
Interval share_of(const std::optional<Interval>& part, std::initializer_list<const std::optional<Interval>*> all) {
    Interval rest;
    for (const std::optional<Interval>* one : all)
        if (one != &part && *one) rest += **one;
    const Interval own = part.value_or(Interval{});
    const auto share = [](double of, double others) { return of + others > 0 ? 100 * of / (of + others) : 0; };
    return {share(own.value, rest.value), share(own.low, rest.high), share(own.high, rest.low)};
}

}  // namespace

bool has_interval(const StepResult& step) { return step.time_us && step.time_us->has_interval(); }

StudyFigure latency(const Point& point, std::size_t index) {
    const Summary& ms = summary_of(point);
    return made("latency_ms", {index}, "", Interval::of(ms), ms.has_interval(), "ms");
}

StudyFigure throughput(const Point& point, std::size_t index) {
    const Summary& ms = summary_of(point);
    const Interval per_s = quotient(Interval::exactly(1e3 * static_cast<double>(point.batch())), Interval::of(ms));
    return made("sequences_per_s", {index}, "", per_s, ms.has_interval(), fmt::format("{}s/s", sequence_word(point)));
}

StudyFigure layer_share(const Point& point, std::size_t index, const std::string& layer) {
    Interval own, rest;
    bool known = true;
    for (const StepResult& step : point.steps) {
        known = known && has_interval(step);
        (layer_group(step.layer) == layer ? own : rest) += device_interval(step);
    }
    const auto share = [](double part, double others) { return part + others > 0 ? 100 * part / (part + others) : 0; };
    return made("layer_share", {index}, layer,
                {share(own.value, rest.value), share(own.low, rest.high), share(own.high, rest.low)}, known, "%");
}

StudyFigure recoverable_time(std::size_t index, const StudyLayer& layer, bool has_interval) {
    return made("recoverable_ms", {index}, layer.name, scaled(*layer.recoverable_us, 1e-3), has_interval, "ms");
}

StudyFigure backward_ratio(const Directions& directions, std::size_t index) {
    const DirectionPair& whole = directions.whole;
    return made("backward_ratio", {index}, "", *whole.time_ratio(),
                whole.forward.has_interval && whole.backward.has_interval, "");
}

StudyFigure backward_ratio_of(const DirectionPair& kind, std::size_t index) {
    return made("backward_ratio", {index}, kind.name, *kind.time_ratio(),
                kind.forward.has_interval && kind.backward.has_interval, "");
}

StudyFigure backward_flop_ratio(const Directions& directions, std::size_t index) {
    return made("backward_flop_ratio", {index}, "", Interval::exactly(*directions.whole.flop_ratio()), true, "");
}

StudyFigure part_share(const Directions& directions, std::size_t index, const std::string& part) {
    const std::optional<Interval>&forward = directions.whole.forward.time_us,
          &backward = directions.whole.backward.time_us, &loss = directions.loss.time_us,
          &optimizer = directions.optimizer.time_us;
    const std::optional<Interval>& own = part == "forward" ? forward : part == "backward" ? backward : optimizer;
    return made("part_share", {index}, part, share_of(own, {&forward, &backward, &loss, &optimizer}),
                directions.whole.backward.has_interval, "%");
}

StudyFigure gap_share(std::size_t index, double share) {
    return made("gap_share", {index}, "", Interval::exactly(100 * share), true, "%");
}

StudyFigure roof_ratio(const Roof& first, std::size_t first_index, const Roof& second, std::size_t second_index) {
    const auto rate = [](const Roof& roof) {
        return roof.low_per_s > 0 ? Interval{roof.per_s, roof.low_per_s, roof.high_per_s}
                                  : Interval::exactly(roof.per_s);
    };
    return made("roof_ratio", {first_index, second_index}, "", quotient(rate(second), rate(first)), true, "");
}

StudyFigure energy_ratio(const Point& first, std::size_t first_index, const Point& second, std::size_t second_index) {
    const double before = *value_of(first.end_to_end->energy_per_sequence_j),
                 after = *value_of(second.end_to_end->energy_per_sequence_j);
    return made("energy_ratio", {first_index, second_index}, "", Interval::exactly(after / before), true, "");
}

StudyFigure throughput_ratio(const Point& first, std::size_t first_index, const Point& second,
                             std::size_t second_index) {
    const double more = static_cast<double>(second.batch()) / static_cast<double>(first.batch());
    return made("throughput_ratio", {first_index, second_index}, "",
                scaled(quotient(Interval::of(summary_of(first)), Interval::of(summary_of(second))), more),
                summary_of(first).has_interval() && summary_of(second).has_interval(), "");
}

StudyFigure latency_ratio(const Point& first, std::size_t first_index, const Point& second, std::size_t second_index) {
    return made("latency_ratio", {first_index, second_index}, "",
                quotient(Interval::of(summary_of(first)), Interval::of(summary_of(second))),
                summary_of(first).has_interval() && summary_of(second).has_interval(), "");
}

}  // namespace kbench
