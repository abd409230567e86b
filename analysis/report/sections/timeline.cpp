// The timeline: kernels one after another, from the sums of the times and gaps before each.
#include <fmt/format.h>

#include <utility>

#include "analysis/report/sections/sections.h"
#include "analysis/table/table.h"

namespace kbench {

Section timeline_section(const SectionContext& context) {
    const Point& point = context.point();
    Section section{"Timeline"};
    section.is_only_on_page = true;
    TimelineChart chart{"us", {}, {}};
    for (const BreakdownGroup& group : context.explanation().breakdown.by_op) chart.groups.push_back(group.name);
    double at_us = 0;
    bool recorded = false;
    const auto add = [&](std::size_t i, const std::string& what, double us) {
        const StepResult& step = point.steps[i];
        chart.bars.push_back({at_us, us, place_in(chart.groups, step.op),
                              fmt::format("{} {}\n{}\n{} from {}", step.index, step.layer, shorten(what, 60),
                                          time_text(us), time_text(at_us)),
                              i});
        at_us += us;
    };
    for (std::size_t i = 0; i < point.steps.size(); ++i) {
        const StepResult& step = point.steps[i];
        for (const KernelResult& kernel : step.kernels) {
            at_us += kernel.gap_us;
            add(i, kernel.short_name, kernel.time_us);
            recorded = true;
        }
        if (step.kernels.empty() && step.time_us) add(i, step.implementation, step.time_us->median);
    }
    const std::string reason =
        point.activity.unavailable.empty() ? "no kernel was recorded" : point.activity.unavailable;
    if (chart.bars.empty())
        section.add(Paragraph{reason, Tone::missing});
    else if (!recorded)
        section.add(Paragraph{
            fmt::format("kernels: {}; these are the steps of the step run, one after another", reason), Tone::missing});
    section.add(
        Chart{recorded ? "Kernels in order of execution" : "Steps in order of execution",
              recorded ? "measured, medians over the runs with records, which lengthen what they record" : "measured",
              std::move(chart)});
    return section;
}

}  // namespace kbench
