// A row for each thing without which figures say nothing.
#include "analysis/explain/conclusions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "models/base/format.h"

namespace kbench {
namespace {

std::string starved_of_cpu(const Point& point, const TimeBreakdown&) { return starvation(point); }

/// Fewer independent samples show neither the median nor how far off it is; an interval needs as many.
std::string few_samples(const Point& point, const TimeBreakdown&) {
    const Summary& ms = point.end_to_end->latency.summary_ms;
    const double independent = independent_samples(*point.end_to_end);
    if (independent >= fewest_independent) return "";
    const double whole = std::floor(independent);  // 9.6 are not the ten that are needed
    const std::string of =
        independent < static_cast<double>(ms.n)
            ? fmt::format("of {} samples {:.0f} {} independent", ms.n, whole, whole == 1 ? "is" : "are")
            : fmt::format("there {} {} sample{}", ms.n == 1 ? "is" : "are", ms.n, ms.n == 1 ? "" : "s");
    return fmt::format("{}, and {:.0f} independent ones are needed", of, fewest_independent);
}

std::string unexplained(const Point&, const TimeBreakdown& breakdown) {
    if (!breakdown.unavailable.empty() || !(breakdown.unexplained_share() > most_unexplained)) return "";
    return fmt::format("drift and residual are {} of the time, where at most {} may stay unexplained",
                       percent(breakdown.unexplained_share()), percent(most_unexplained));
}

struct Need {
    std::string (*lacks)(const Point& point, const TimeBreakdown& breakdown);  ///< empty where it is there
    std::string_view remedy, of_program;  ///< `of_program`: a program is measured otherwise
};
constexpr Need needs[] = {
    {starved_of_cpu, "measure while nothing else uses the machine and no quota is below --threads",
     "attach while nothing else uses the machine"},
    {few_samples, "a longer --time-budget takes more", "let the program run for longer"},
    {unexplained, "measure again while nothing else uses the machine, and for longer (--time-budget)",
     "attach again while nothing else uses the machine, and let the program run for longer"},
};

void withhold(Verdict& verdict, std::string_view rule, std::string_view why, std::string_view overturned_by) {
    verdict.bound = Bound::not_identifiable;
    verdict.rule = rule;
    verdict.level.clear();
    verdict.evidence = {std::string(why)};
    verdict.undecided = verdict.margin = 0;
    verdict.lacks_units = verdict.may_be_one = false;
    verdict.overturned_by = overturned_by;
    for (Hypothesis& hypothesis : verdict.hypotheses)
        hypothesis = {hypothesis.bound, Finding::not_identifiable, std::string(why)};
}

}  // namespace

double independent_samples(const EndToEnd& times) {
    const Summary& ms = times.latency.summary_ms;
    return times.counted_independent && ms.independent > 0 ? ms.independent : static_cast<double>(ms.n);
}

std::string starvation(const Point& point) {
    if (!starved(point.conditions)) return "";
    return fmt::format("the process did not get {} of the CPU time that it wanted, where at most {} may be missing",
                       percent(*point.conditions.cpu_share->lacked()), percent(most_lacked_share));
}

std::vector<std::string> missing_ground(const Point& point, const TimeBreakdown& breakdown) {
    std::vector<std::string> missing;
    if (point.status != PointStatus::done || !point.end_to_end) return missing;
    for (const Need& need : needs)
        if (const std::string lacks = need.lacks(point, breakdown); !lacks.empty())
            missing.push_back(fmt::format("{}: {}", lacks, point.program ? need.of_program : need.remedy));
    return missing;
}

std::string no_conclusion(const std::vector<std::string>& missing) {
    return fmt::format("No conclusion is drawn from these figures: {}.", fmt::join(missing, "; "));
}

Verdicts withheld_from(Verdicts verdicts, const std::vector<std::string>& impossible,
                       const std::vector<std::string>& missing) {
    if (impossible.empty() && missing.empty()) return verdicts;
    verdicts.kernels.reset();
    const auto withhold_all = [&](std::string_view rule, std::string_view why, std::string_view overturned_by) {
        for (Verdict& verdict : verdicts.steps) withhold(verdict, rule, why, overturned_by);
        for (Verdict& verdict : verdicts.layers) withhold(verdict, rule, why, overturned_by);
        withhold(verdicts.model, rule, why, overturned_by);
    };
    if (!impossible.empty()) {
        withhold_all("impossible", "impossible figures", "figures that can be");
    } else {
        withhold_all("no-ground", "no conclusion is drawn from this point", "figures that carry a conclusion");
        verdicts.model.evidence = missing;
    }
    return verdicts;
}

std::optional<std::string> drift_warning(const Point& point) {
    if (!point.end_to_end || !(point.activity.unprofiled_ms > 0)) return std::nullopt;
    const double ms = point.end_to_end->latency.summary_ms.median;
    const double share = ms > 0 ? (ms - point.activity.unprofiled_ms) / ms : 0;
    if (!(std::abs(share) > closing_tolerance)) return std::nullopt;
    return fmt::format(
        "the timing run took {:.1f} % {} than the runs whose steps were timed: the machine did not stay as it was, so what the steps say may be wrong by as much of the whole run",
        100 * std::abs(ms / point.activity.unprofiled_ms - 1), share > 0 ? "longer" : "shorter");
}

}  // namespace kbench
