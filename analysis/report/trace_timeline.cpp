// One forward is laid out by the medians of its kernels and gaps, or of its steps.
#include "analysis/report/trace_timeline.h"

#include <algorithm>

namespace kbench {
namespace {

bool has_kernels(const StepResult& step) { return !step.kernels.empty(); }

Nanoseconds duration(double us) { return std::max<Nanoseconds>(0, nanoseconds(us)); }

std::optional<TimeSpan> copy_at(Nanoseconds start, const std::optional<Timing>& timing) {
    if (!timing) return std::nullopt;
    return TimeSpan{start, start + duration(timing->summary_ms.median * 1e3)};
}

/// The step's kernels after `end`, each after its gap.
StepInterval recorded_step(const StepResult& step, Nanoseconds end) {
    StepInterval placed;
    placed.step = &step;
    for (const KernelResult& kernel : step.kernels) {
        const Nanoseconds gap = nanoseconds(kernel.gap_us);
        KernelInterval one;
        const Nanoseconds waits = std::min(nanoseconds(kernel.host_wait_us.value_or(0)), gap);
        if (waits > 0) one.host_wait = TimeSpan{end, end + waits};
        one.start = end + std::max<Nanoseconds>(0, gap);
        one.end = end = one.start + duration(kernel.time_us);
        one.kernel = &kernel;
        one.overlap = std::max<Nanoseconds>(0, -gap);
        placed.kernels.push_back(one);
    }
    placed.start = placed.kernels.empty() ? end : placed.kernels.front().start;
    placed.end = end;
    return placed;
}

/// Adds the runs of consecutive steps in [first, last) with the same name; `inside` adds what they contain.
template <class NameOf, class Inside>
void add_runs(Timeline& timeline, std::size_t first, std::size_t last, NameOf name_of, Inside inside) {
    while (first < last) {
        const std::string_view name = name_of(timeline.steps[first].step->layer);
        std::size_t end = first + 1;
        while (end < last && name_of(timeline.steps[end].step->layer) == name) ++end;
        if (!name.empty()) {
            LayerInterval layer;
            layer.start = timeline.steps[first].start;
            layer.end = timeline.steps[end - 1].end;
            layer.name = name;
            layer.first_step = first;
            layer.step_count = end - first;
            timeline.layers.push_back(std::move(layer));
        }
        inside(first, end);
        first = end;
    }
}

}  // namespace

std::string_view block_of(std::string_view layer) {
    for (std::size_t start = 0; start < layer.size();) {
        const std::size_t dot = std::min(layer.find('.', start), layer.size());
        const std::string_view part = layer.substr(start, dot - start);
        const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
        if (is_number) return dot < layer.size() ? layer.substr(0, dot) : std::string_view();
        start = dot + 1;
    }
    return {};
}

Timeline make_timeline(const Point& point) {
    Timeline timeline;
    timeline.recorded = point.activity.runs > 0 || std::ranges::any_of(point.steps, has_kernels);
    if (point.end_to_end) timeline.tokens_in = copy_at(0, point.end_to_end->host_to_device);
    Nanoseconds end = timeline.forward.start = timeline.tokens_in ? timeline.tokens_in->end : 0;
    for (const StepResult& step : point.steps) {
        if (!timeline.recorded && !step.time_us) {
            ++timeline.untimed_steps;
            continue;
        }
        StepInterval placed = recorded_step(step, end);
        if (!timeline.recorded) placed.end = end + duration(step.time_us->median);
        end = placed.end;
        timeline.steps.push_back(std::move(placed));
    }
    timeline.forward.end = end;
    if (point.end_to_end) timeline.logits_out = copy_at(end, point.end_to_end->device_to_host);

    const auto layer_of = [](std::string_view layer) { return layer; };
    add_runs(timeline, 0, timeline.steps.size(), block_of, [&](std::size_t first, std::size_t last) {
        add_runs(timeline, first, last, layer_of, [](std::size_t, std::size_t) {});
    });
    return timeline;
}

}  // namespace kbench
