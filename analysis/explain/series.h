// What a series of points along one axis says that no point says alone: how long a time step takes at each batch,
// and how the time grows with the frames.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"

namespace kbench {

/// A time step at one batch.
struct BatchPoint {
    std::int64_t batch = 0;
    SerialChain steps;  ///< those of all recurrent layers of the point
    double us_per_sequence() const { return steps.us() / static_cast<double>(batch); }
};

/// Points that differ in their batch alone, and in the lengths drawn for it; the smallest batch first.
struct BatchSeries {
    std::string title;  ///< what tells it from the other series: "fp16 frames 1000"; empty of the only one
    std::vector<BatchPoint> points;
    std::string finding;  ///< what a larger batch does to a time step, and up to which it is latency-bound
};
/// Those with two batches or more that have time steps. Of a point that was repeated the first counts.
std::vector<BatchSeries> batch_series(const ExplainedResult& explained);

/// The straight line through times by frames, by least squares: time = constant + per_frame * frames.
struct FramesFit {
    double constant_ms = 0, ms_per_frame = 0;
    /// A point's time less the line's. The largest in magnitude, as a share of that point's time.
    double worst_residual = 0;
};

/// Points that differ in their frames alone, and in the lengths drawn for them; the fewest first.
struct FramesSeries {
    struct Point {
        std::int64_t frames = 0;
        double ms = 0;           ///< end to end, median
        double residual_ms = 0;  ///< ms less the line's
    };
    std::string title;
    std::vector<Point> points;
    FramesFit fit;
};
/// Those with three or more.
std::vector<FramesSeries> frames_series(std::span<const Point> points);

/// Points on a line of two or more different x.
FramesFit fit_line(std::span<const FramesSeries::Point> points);

}  // namespace kbench
