// A program that kbench attached to: what was run, what an iteration of it is, and what records did to it.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// "20 recorded, each of 8 launches: 8 kernels, 2 copies and fills".
std::string iterations_text(const ProgramRun& run) {
    if (!run.iterations_unavailable.empty()) return "";
    return fmt::format("{} recorded, each of {} launch{}: {}{}", run.iterations, run.launches,
                       run.launches == 1 ? "" : "es", plural(run.kernels, "kernel"),
                       run.copies > 0 ? fmt::format(", {} copies and fills", run.copies) : "");
}

/// What records add to an iteration: "+12.3 %: 1.04 ms without, 1.17 ms with them".
std::string records_text(const ProgramRun& run) {
    if (!(run.recorded_ms > 0)) return "";
    if (!(run.bare_ms > 0)) return "unknown: no iteration was timed without them";
    return fmt::format("{:+.1f} %: {} without, {} with them", 100 * (run.recorded_ms / run.bare_ms - 1),
                       format_ms(run.bare_ms), format_ms(run.recorded_ms));
}

}  // namespace

bool has_no_known_work(const PointFacts& facts) {
    return facts.unknown_work_us > 0 && std::ranges::all_of(facts.steps, [](const StepFacts& step) {
               return step.has_unknown_work() || step.copies_us >= step.kernels_us;
           });
}

std::string unknown_work_text(const PointFacts& facts) {
    if (facts.unknown_work_us <= 0 || facts.end_to_end_us <= 0) return "";
    return fmt::format("Of kernels with {} of the time FLOPs and bytes are not known, so they are not in these.",
                       percent(facts.unknown_work_us / facts.end_to_end_us));
}

Section program_section(const SectionContext& context) {
    Section section{context.is_full() ? "Program" : ""};
    const Point& point = context.point();
    if (!point.program) return section;
    const ProgramRun& run = *point.program;
    Facts facts;
    const auto add = [&facts](std::string_view label, std::string value, std::string_view origin = "") {
        if (!value.empty()) facts.facts.push_back({std::string(label), std::move(value), std::string(origin)});
    };
    add("program", run.command);
    if (run.processes > 1) add("processes", std::to_string(run.processes));
    add("iterations", iterations_text(run));
    if (!run.iterations_unavailable.empty()) add("no iteration", run.iterations_unavailable);
    add("records add", records_text(run), "measured: two runs");
    if (run.recorded_ms > 0 && run.busy_ms > 0)
        add("GPU with records",
            fmt::format("{} busy, {} idle as the next launch came too late, {} idle between launches that came in time",
                        format_ms(run.busy_ms), format_ms(run.host_wait_ms), format_ms(run.queued_ms)),
            "measured: means of the middle half of the iterations");
    add("names", run.named ? "layers, ops and lines as the framework called them"
                           : "unavailable: the framework's calls were not recorded");
    section.add(std::move(facts));
    if (!run.notes.empty()) section.add(Bullets{run.notes});
    return section;
}

}  // namespace kbench
