// Cycles are compared at the clock that the step had, as kbench reads it: what a kernel does takes so many at any
// clock.
#include "tests/truths/cause_figures.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kbench {
namespace {

std::optional<double> sum_us(const KnownResult& known, const std::vector<Cause>& causes) {
    if (known.explained.causes.steps.empty()) return std::nullopt;
    const StepCauses& step = known.explained.causes.steps.front();
    if (step.time_us <= 0 || !step.no_fit.empty()) return std::nullopt;
    double us = 0;
    for (const Cause cause : causes) us += step.at_run_clock[cause].value;
    return us;
}

/// In what the lines were planted.
std::optional<double> planted_unit(const KnownResult& known, double us) {
    const StepFacts& facts = known.explained.facts.steps.front();
    if (!facts.on_gpu) return us;
    return facts.own_clock_mhz.value > 0 ? std::optional(us * facts.own_clock_mhz.value) : std::nullopt;
}

PlantedFigure planted_figure(PlantedLines lines) {
    return {std::move(lines.what), lines.planted,
            [causes = std::move(lines.causes)](const KnownResult& known) -> std::optional<double> {
                const std::optional<double> us = sum_us(known, causes);
                return us ? planted_unit(known, *us) : std::nullopt;
            },
            Tolerance::of_planted, cause_tolerance};
}

std::string of_the_time(Cause cause) { return std::string(info(cause).name) + ", of the time"; }

std::optional<double> share_of(const KnownResult& known, Cause cause) {
    std::optional<double> us = sum_us(known, {cause});
    // At the clock of the run the clock has no line.
    if (us && cause == Cause::clock) us = known.explained.causes.steps.front().lines[cause].value;
    return us ? std::optional(*us / known.explained.causes.steps.front().time_us) : std::nullopt;
}

PlantedFigure absent_figure(Cause cause) {
    return {of_the_time(cause), 0, [cause](const KnownResult& known) { return share_of(known, cause); },
            Tolerance::of_whole};
}

}  // namespace

std::vector<PlantedFigure> cause_figures(const std::vector<PlantedLines>& lines) {
    std::vector<PlantedFigure> figures;
    const auto is_planted = [&lines](Cause cause) {
        return std::ranges::any_of(lines, [cause](const PlantedLines& one) {
            return std::ranges::find(one.causes, cause) != one.causes.end();
        });
    };
    for (const PlantedLines& one : lines) figures.push_back(planted_figure(one));
    for (std::size_t i = 0; i < cause_count; ++i)
        if (!is_planted(cause_at(i))) figures.push_back(absent_figure(cause_at(i)));
    return figures;
}

std::vector<PlantedFigure> figures_of_one_cause(Cause cause) {
    std::vector<PlantedFigure> figures{{of_the_time(cause), 1,
                                        [cause](const KnownResult& known) { return share_of(known, cause); },
                                        Tolerance::of_planted, cause_tolerance}};
    for (std::size_t i = 0; i < cause_count; ++i)
        if (cause_at(i) != cause) figures.push_back(absent_figure(cause_at(i)));
    return figures;
}

}  // namespace kbench
