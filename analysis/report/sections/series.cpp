// What a sweep over batches or frames says: the time of a time step by batch, and the time by frames.
#include "analysis/explain/series.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

Rows batch_rows(const BatchSeries& series, Depth depth) {
    Rows rows{
        {figures("batch"), figures("us a time step"), figures("us a sequence of it", 1), figures("roofs together us"),
         figures("of its time %"), words("roofs, us", 2), figures("exchange us", 1), words("verdict")},
        {},
        series.title.empty() ? "" : series.title + ":"};
    for (const BatchPoint& point : series.points) {
        const SerialChain& steps = point.steps;
        const bool has_roofs = steps.together_us > 0;
        rows.rows.push_back({fmt::to_string(point.batch), significant(steps.us()), significant(point.us_per_sequence()),
                             has_roofs ? significant(steps.together_us_of_one()) : "",
                             has_roofs ? fixed(100 * steps.together_share(), 1) : "",
                             depth == Depth::full ? roofs_of_one(steps) : "",
                             steps.exchange ? significant(steps.exchange->us) : "", std::string(name(steps.bound))});
    }
    return rows;
}

Section batch_section(const std::vector<BatchSeries>& all, Depth depth) {
    Section section{"A time step by batch"};
    const auto is_complete = [](const BatchSeries& series) {
        return std::ranges::all_of(series.points, [](const BatchPoint& point) { return point.steps.is_complete; });
    };
    if (depth == Depth::full && !all.empty())
        section.add(Paragraph{fmt::format(
            "Measured: the time of recurrent layers over their time steps. Roofs together: what all roofs, one after another, would take of it, at each batch{}.",
            std::ranges::all_of(all, is_complete) ? "" : "; not all work was counted")});
    for (const BatchSeries& series : all) {
        section.add(batch_rows(series, depth));
        section.add(Paragraph{series.finding});
    }
    return section;
}

Section frames_section(const std::vector<FramesSeries>& all) {
    Section section{"Time by frames"};
    for (const FramesSeries& series : all) {
        Rows rows{{figures("frames"), figures("median ms"), figures("line ms"), figures("residual %")},
                  {},
                  series.title.empty() ? "" : series.title + ":"};
        for (const FramesSeries::Point& point : series.points) {
            const int decimals = decimals_for(point.ms, time_digits);
            rows.rows.push_back({fmt::to_string(point.frames), fixed(point.ms, decimals),
                                 fixed(point.ms - point.residual_ms, decimals),
                                 fmt::format("{:+.1f}", 100 * point.residual_ms / point.ms)});
        }
        section.add(std::move(rows));
        section.add(Paragraph{fmt::format(
            "The straight line through {} points, by least squares: {} us a frame and {} ms whatever their number; the largest residual is {:+.1f} %.",
            series.points.size(), significant(series.fit.ms_per_frame * 1e3),
            fixed(series.fit.constant_ms, decimals_for(series.points.front().ms, time_digits)),
            100 * series.fit.worst_residual)});
    }
    return section;
}

}  // namespace

Section series_section(const SectionContext& context) {
    Section series{""};
    if (!is_told_as_sweep(context)) return series;
    series.add(batch_section(batch_series(context.explained), context.depth));
    series.add(frames_section(frames_series(context.explained.points())));
    return series;
}

}  // namespace kbench
