// How far medians lie apart from run to run, from repeats or from what this machine remembers.
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

/// Whether nothing that a result tells of them differs. Uncommitted changes may be any.
bool is_repeat(const Environment& one, const Environment& other) {
    const auto program = [](const Environment& e) {
        return std::tie(e.kbench_version, e.git_revision, e.build_type, e.compiler, e.libraries);
    };
    const auto machine = [](const Environment& e) {
        return std::tuple(e.gpu ? e.gpu->uuid : "", e.gpu ? e.gpu->driver : "", e.host.cpu, e.host.threads,
                          e.host.cpu_quota, e.host.os, e.host.kernel);
    };
    return !one.git_revision.empty() && !one.git_revision.ends_with("-dirty") && program(one) == program(other) &&
           machine(one) == machine(other) && command_of(one) == command_of(other);
}

/// The medians of `point` in all runs that repeat `run`, itself among them: of each its first.
std::vector<double> repeats(std::span<const NamedResult> runs, const NamedResult& run, const Point& point) {
    std::vector<double> medians;
    std::vector<std::string> started;  // one a process: its own repeats are closer together
    for (const NamedResult& other : runs) {
        const Environment& environment = other.result.environment;
        if (!is_repeat(run.result.environment, environment)) continue;
        if (std::ranges::find(started, environment.started_at) != started.end()) continue;  // the same run again
        const auto theirs = std::ranges::find_if(other.result.points, [&](const Point& candidate) {
            return candidate.end_to_end && !first_difference(point, candidate) &&
                   candidate.end_to_end->latency.summary_ms.median > 0;
        });
        if (theirs == other.result.points.end()) continue;
        started.push_back(environment.started_at);
        medians.push_back(theirs->end_to_end->latency.summary_ms.median);
    }
    return medians;
}

void take_larger(std::optional<RunSpread>& spread, RunSpread other) {
    if (!spread || other.least_difference() > spread->least_difference()) spread = std::move(other);
}

}  // namespace

double RunSpread::least_difference() const { return student_t(normal_975, runs - 1) * deviation * std::numbers::sqrt2; }

double log_deviation(std::span<const double> values) {
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const double value : values) mean += std::log(value) / count;
    for (const double value : values) squares += (std::log(value) - mean) * (std::log(value) - mean);
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
