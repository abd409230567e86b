// See run_spread.h.
#include "analysis/compare/run_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <tuple>
#include <vector>

#include "analysis/result/student_t.h"

namespace kbench {
namespace {

/// Without where it wrote to.
std::string command_of(const Environment& environment) {
    std::istringstream words(environment.command_line);
    std::string text, word;
    while (words >> word) {
        if (word == "--out") {
            words >> word;
            continue;
        }
        if (!word.starts_with("--out=")) text += " " + word;
    }
    return text;
}

bool is_repeat(const Environment& one, const Environment& other) {
    const auto device = [](const Environment& e) { return e.gpu ? e.gpu->uuid : e.host.cpu; };
    return one.git_revision == other.git_revision && device(one) == device(other) &&
           command_of(one) == command_of(other);
}

/// The medians of `point` in all runs that repeat `run`, itself among them.
std::vector<double> repeats(std::span<const NamedResult> runs, const NamedResult& run, const Point& point) {
    std::vector<double> medians;
    for (const NamedResult& other : runs) {
        if (!is_repeat(run.result.environment, other.result.environment)) continue;
        for (const Point& theirs : other.result.points)
            if (theirs.end_to_end && !first_difference(point, theirs) &&
                theirs.end_to_end->latency.summary_ms.median > 0)
                medians.push_back(theirs.end_to_end->latency.summary_ms.median);
    }
    return medians;
}

void take_larger(std::optional<RunSpread>& spread, RunSpread other) {
    if (!spread || other.least_difference() > spread->least_difference()) spread = std::move(other);
}

}  // namespace

double RunSpread::least_difference() const { return student_t(normal_975, runs - 1) * deviation * std::numbers::sqrt2; }

double log_deviation(std::span<const double> medians_ms) {
    const auto count = static_cast<double>(medians_ms.size());
    double mean = 0, squares = 0;
    for (const double ms : medians_ms) mean += std::log(ms) / count;
    for (const double ms : medians_ms) squares += (std::log(ms) - mean) * (std::log(ms) - mean);
    return std::sqrt(squares / (count - 1));
}

std::optional<RunSpread> run_spread(std::span<const NamedResult> runs, const NamedResult& a, const NamedResult& b,
                                    const Point& point) {
    std::optional<RunSpread> spread;
    for (const NamedResult* side : {&a, &b})
        if (const std::vector<double> medians = repeats(runs, *side, point); medians.size() >= fewest_repeats)
            take_larger(spread, {log_deviation(medians), static_cast<int>(medians.size()),
                                 fmt::format("{} of these runs are repeats of {}", medians.size(), side->name)});
    if (spread) return spread;
    for (const NamedResult* side : {&a, &b})
        if (const auto& known = side->result.environment.run_to_run; known && known->runs >= fewest_repeats)
            take_larger(spread,
                        {known->deviation, known->runs,
                         fmt::format("{} runs of `{}` on {}'s machine", known->runs, known->command_line, side->name)});
    return spread;
}

}  // namespace kbench
