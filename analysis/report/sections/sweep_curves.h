// The points of a sweep along one of the axes on which they differ: a curve for each combination of the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report/sections/sections.h"

namespace kbench {

/// A figure of a point; nothing where it is not known.
using PointFigure = std::optional<double> (*)(const SectionContext& context);

/// A point and its repeats.
struct SweepPlace {
    std::vector<double> values;
    SectionContext first;

    double median() const;
};

struct SweepCurve {
    std::string name;  ///< the values of the other axes: "fp16, batch 4"
    std::map<AxisValue, SweepPlace> places = {};
};

double median_ms(const SectionContext& context);
/// The axes on which the points differ: those of a sweep, then hardware; counts with the most values first.
std::vector<const Axis*> differing_axes(const std::vector<SectionContext>& points);
/// "fp16, batch 4": the point's values on these axes, but for `along`.
std::string place_name(const Point& point, const std::vector<const Axis*>& axes, const Axis* along = nullptr);
std::vector<SweepCurve> curves_along(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes,
                                     const Axis& along, PointFigure figure);

/// What the points say together, a sentence each: whether it is bandwidth, what binds them, the fastest, and what each
/// axis does. A point and its repeats are one. Points with wrong results or impossible figures are left out.
std::vector<std::string> sweep_answer(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes);

/// What the ranks of one program say together: the longest and the shortest iteration, and which rank others wait for.
/// Who comes last waits least in the kernels that wait for other ranks.
std::vector<std::string> rank_answer(const std::vector<SectionContext>& points);

}  // namespace kbench
