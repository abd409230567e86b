// Whether the figures of a point carry conclusions. All that says what binds, what would help or what follows from a
// change asks here; the figures themselves stay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/time_breakdown.h"
#include "analysis/explain/verdict.h"
#include "analysis/result/correlation.h"
#include "kbench/result.h"

namespace kbench {

/// More of the end-to-end time than this unexplained, and what the rest says is not what the whole does. 2 % is what a
/// breakdown should close to (closing_tolerance); as the limit of a verdict it took the verdict from most of the CPU
/// studies under results/, whose verdicts hold in runs that close.
inline constexpr double most_unexplained = 0.10;
/// Samples of the latency that count as independent: all of them in files of before version 6, whose sampler did not
/// look at it.
double independent_samples(const EndToEnd& times);

/// How much CPU time the process did not get while the point was timed, where that is so much that its times say
/// nothing; else empty.
std::string starvation(const Point& point);

/// What the figures of a point lack, a sentence each that ends in what to do about it, without a full stop. Empty where
/// they carry conclusions, and for a point that was not timed.
std::vector<std::string> missing_ground(const Point& point, const TimeBreakdown& breakdown);

/// "No conclusion is drawn: ...": those together.
std::string no_conclusion(const std::vector<std::string>& missing);

/// The verdicts of a point without what they say, each not identifiable and why, where it has impossible figures or is
/// `missing` some ground; else as they are.
Verdicts withheld_from(Verdicts verdicts, const std::vector<std::string>& impossible,
                       const std::vector<std::string>& missing);

/// A warning where the timing run and the runs whose steps were timed differ by more than closing_tolerance.
std::optional<std::string> drift_warning(const Point& point);

}  // namespace kbench
