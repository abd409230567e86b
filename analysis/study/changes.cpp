// What to change: candidates with what is known of their worth, the largest first.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/study/parts.h"

namespace kbench {
namespace {

constexpr std::size_t most_changes = 3;
/// A change that saves less of a sequence's time is not worth it.
constexpr double worthwhile = 0.02;
/// A layer with less of the time is no example of what can be reached.
constexpr double exemplary_share = 0.02;

/// What a ratio of speeds saves of the time of a sequence.
Interval saved_by(const Interval& faster) {
    const auto saved = [](double ratio) { return ratio > 0 ? 1 - 1 / ratio : 0; };
    return {saved(faster.value), saved(faster.low), saved(faster.high)};
}

/// The row of another point that carries conclusions and is first by `before`; null where there is none.
template <class Before>
const StudyRow* best_other(const StudyPoints& points, const std::vector<StudyRow>& rows, std::size_t base,
                           Before before) {
    const StudyRow* best = nullptr;
    for (const StudyRow& row : rows)
        if (row.point != base && points.explanation(row.point).concludes() && (best == nullptr || before(row, *best)))
            best = &row;
    return best;
}

void add_precision(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    const auto faster = [](const StudyRow& a, const StudyRow& b) { return a.latency_ms.value < b.latency_ms.value; };
    const StudyRow* best = best_other(points, study.precisions, base, faster);
    if (best == nullptr) return;
    const PointAt slow = points.at(base), fast = points.at(best->point);
    const StudyFigure ratio = latency_ratio(slow, fast);
    changes.push_back(
        {fmt::format("Compute in {} instead of {}", name(fast.point.precision()), name(slow.point.precision())),
         saved_by(ratio.value),
         told("Measured: {} instead of {}, {} times as fast.", latency(fast), latency(slow), ratio),
         "Results that are not good enough: what the model loses in accuracy is not measured here."});
}

void add_batch(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    const auto more = [](const StudyRow& a, const StudyRow& b) { return a.sequences_per_s > b.sequences_per_s; };
    const StudyRow* best = best_other(points, study.batches, base, more);
    if (best == nullptr) return;
    const PointAt now = points.at(base), fast = points.at(best->point);
    const StudyFigure ratio = throughput_ratio(now, fast);
    changes.push_back(
        {fmt::format("Batch {} instead of {}", fast.point.batch(), now.point.batch()), saved_by(ratio.value),
         told("Measured: {} instead of {}, {} times as many.", throughput(fast), throughput(now), ratio),
         fmt::format("A limit on the time that one answer may take: a run of that batch takes {}.", latency(fast))});
}

/// The share of its longest roof time in a layer's time; nothing where no roof is known.
std::optional<double> reached(const StudyLayer& layer) {
    if (!layer.recoverable_us || layer.time_us.value <= 0) return std::nullopt;
    return 1 - layer.recoverable_us->value / layer.time_us.value;
}

/// A layer that comes less near to its roofs than another one that the same thing binds: as near as that one it would
/// take less. All of what is above its roofs is the most that can be won.
void add_layers(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    double all_us = 0;
    for (const StudyLayer& layer : study.layers) all_us += layer.time_us.value;
    for (const StudyLayer& layer : study.layers) {
        const std::optional<double> here = reached(layer);
        if (!here || all_us <= 0 || !layer.is_identified) continue;
        const StudyLayer* example = nullptr;
        for (const StudyLayer& other : study.layers)
            if (&other != &layer && other.bound == layer.bound && other.share.value >= exemplary_share &&
                reached(other) && (example == nullptr || *reached(other) > *reached(*example)))
                example = &other;
        if (example == nullptr || *reached(*example) <= *here) continue;
        const double expected_us = layer.time_us.value * (1 - *here / *reached(*example));
        const StudyFigure share = layer_share(points.at(base), layer.name);
        changes.push_back(
            {fmt::format("A faster {} ({})", layer.name, layer.kernel),
             {expected_us / all_us, 0, layer.recoverable_us->high / all_us},
             told(
                 "It has {} of the time and {} above its roof time; {}, with the same verdict, comes nearer to its own.",
                 share, recoverable_time(base, layer, share.has_interval), example->name),
             fmt::format(
                 "The same work in another kernel (kbench micro --op …) that is no faster; or a unit without a roof here that keeps {} busy.",
                 layer.name)});
    }
}

void add_gaps(const StudyPoints& points, std::size_t base, std::vector<StudyChange>& changes) {
    const TimeBreakdown& breakdown = points.explanation(base).breakdown;
    if (!breakdown.unavailable.empty() || breakdown.end_to_end_us <= 0) return;
    const double share = breakdown.total.gaps_us() / breakdown.end_to_end_us;
    if (share <= 0) return;
    changes.push_back(
        {"Fewer and longer kernels",
         {share, 0, share},
         told("Between kernels the device waits for {} of the time, which is the most that fusing them can save.",
              gap_share(base, share)),
         "Kernels that must wait for each other at these places in any case."});
}

}  // namespace

std::vector<StudyChange> changes_of(const StudyPoints& points, const Study& study) {
    std::vector<StudyChange> changes;
    if (!study.changes_unavailable.empty()) return changes;
    add_precision(points, study, *study.base, changes);
    add_batch(points, study, *study.base, changes);
    add_layers(points, study, *study.base, changes);
    add_gaps(points, *study.base, changes);
    // What was measured in both ways and may be no gain at all is none; of layers and gaps the least is always nothing.
    std::erase_if(changes,
                  [](const StudyChange& change) { return change.saved.value < worthwhile || change.saved.low < 0; });
    std::ranges::stable_sort(changes, std::greater{}, [](const StudyChange& change) { return change.saved.value; });
    changes.resize(std::min(changes.size(), most_changes));
    return changes;
}

std::vector<WhatIf> elsewhere_of(const StudyPoints& points, const Study& study) {
    std::vector<WhatIf> all;
    if (!study.base) return all;
    const Result& result = points.explained->result();
    const Point& point = points.point(*study.base);
    const WhatIfMachine here = what_if_machine(result);
    const MachineFile* own = machine_of(result.environment, point.backend());
    for (const MachineFile& machine : machines()) {
        if (machine.kind == "gpu" && !machine.name.starts_with("NVIDIA "))
            continue;  // there is no program for another maker's
        const WhatIfMachine there = what_if_machine(machine);
        if ((own != nullptr && own->id == machine.id) || !why_not_between(here, there).empty()) continue;
        WhatIf answer = what_if(points.explanation(*study.base), here, there);
        if (answer.unavailable.empty() && answer.there_ms.value > 0) all.push_back(std::move(answer));
    }
    std::ranges::stable_sort(all, {}, [](const WhatIf& answer) { return answer.there_ms.value; });
    return all;
}

}  // namespace kbench
