#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

bool is_wrong(const VerifiedStep& step) { return !(step.error_over_bound <= 1); }  // NaN, too

/// How kernels were recorded, or why they were not.
std::string kernels_text(const Point& point) {
    const ActivityRun& activity = point.activity;
    if (activity.runs == 0)
        return point.backend() == "cuda" && !activity.unavailable.empty() ? "unavailable: " + activity.unavailable : "";
    std::size_t kernels = 0;
    for (const StepResult& step : point.steps) kernels += step.kernels.size();
    const TimeUnit unit = time_unit(activity.kernels_ms);
    std::string text =
        fmt::format("{} recorded in {} {}: {} {} and gaps of {} {}", kernels, activity.runs, timed_words(point).several,
                    significant(activity.kernels_ms * unit.per_ms, time_digits), unit.name,
                    significant(activity.gaps_ms * unit.per_ms, 2), unit.name);
    if (activity.inflation.empty()) return text;
    const RecordInflation& shortest = activity.inflation.front();
    return text + fmt::format("; recording makes a kernel of {:.1f} us look like {:.1f} us and take {:.1f} us",
                              shortest.kernel_us, shortest.recorded_us, shortest.profiled_us);
}

/// How counters were read, or why they were not.
std::string counters_text(const CounterRun& counters) {
    if (!counters.unavailable.empty()) return "unavailable: " + counters.unavailable;
    if (counters.metrics.empty()) return {};
    const std::string chip = counters.chip.empty() ? ""
                                                   : fmt::format(", {}, {} pass{}", counters.chip, counters.passes,
                                                                 counters.passes == 1 ? "" : "es");
    return fmt::format("{}{}, {}", fmt::join(counters.requested, ", "), chip, format_seconds(counters.seconds));
}

}  // namespace

bool has_wrong_step(const Verification& verification) { return std::ranges::any_of(verification.steps, is_wrong); }

std::string verified_text(const Verification& verification, Depth depth) {
    if (!verification.enabled) return "no: turned off";
    if (verification.steps.empty()) return "no: nothing was checked";
    std::int64_t checked = 0, total = 0;
    const VerifiedStep* worst = &verification.steps.front();
    for (const VerifiedStep& step : verification.steps) {
        checked += step.elements_checked;
        total += step.elements_total;
        if (!is_wrong(step) && step.error_over_bound > worst->error_over_bound) worst = &step;
    }
    const std::size_t distinct = verification.steps.size();
    const std::string verdict = !has_wrong_step(verification)
                                    ? fmt::format("largest error {} of its bound ({} {})",
                                                  significant(worst->error_over_bound, 2), worst->op, worst->shape)
                                    : std::string("NOT all within their bounds");
    if (depth == Depth::screen)
        return fmt::format("{} against the reference, {}all within their bounds",
                           plural(static_cast<std::int64_t>(distinct), "distinct step"),
                           has_wrong_step(verification) ? "NOT " : "");
    return fmt::format("{} distinct step{} against the reference, {} of {} elements, {}, {}", distinct,
                       distinct == 1 ? "" : "s", significant(static_cast<double>(checked)),
                       significant(static_cast<double>(total)), verdict, format_seconds(verification.seconds));
}

Section checks_section(const SectionContext& context) {
    const Point& point = context.point();
    Section section{context.is_full() ? "How it was measured" : ""};
    Facts facts;
    const auto add = [&facts](std::string_view label, std::string value) {
        facts.facts.push_back({std::string(label), std::move(value), ""});
    };
    if (!point.program) add("verified", verified_text(point.verification, context.depth));
    for (const VerifiedStep& step : point.verification.steps)
        if (is_wrong(step))
            add("WRONG", fmt::format("{} {} by {} ({}): error {:.3g} where {:.3g} is allowed", step.op, step.shape,
                                     step.provider, step.implementation, step.worst_error, step.bound_there));
    add("kernels", kernels_text(point));
    add("counters", counters_text(point.counters));
    if (point.backend() == "cpu" && point.counters.unavailable.empty()) {
        std::map<std::string, std::vector<std::string>> by_reason;
        for (const CountedMetric& metric : point.counters.metrics)
            if (metric.origin != Origin::measured)
                by_reason[fmt::format("{}: {}", name(metric.origin), metric.reason)].push_back(metric.name);
        for (const auto& [reason, names] : by_reason) add("", fmt::format("{} {}", fmt::join(names, ", "), reason));
    }
    if (!context.is_full()) {
        add("wall time", joined(point.phase_seconds, ", ", [](const auto& phase) {
                return fmt::format("{} {}", phase.first, format_seconds(phase.second));
            }));
    }
    section.add(std::move(facts));
    return section;
}

}  // namespace kbench
