// What to change: candidates with what is known of their worth, the largest first.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/point_roofs.h"
#include "analysis/study/parts.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr std::size_t most_changes = 3;
/// Of a sequence's time: less is not worth a change.
constexpr double worthwhile = 0.02;
/// A layer with less of the time is no example of what can be reached.
constexpr double exemplary_share = 0.02;

/// What a ratio of speeds saves of the time of a sequence.
Interval saved_by(const Interval& faster) {
    const auto saved = [](double ratio) { return ratio > 0 ? 1 - 1 / ratio : 0; };
    return {saved(faster.value), saved(faster.low), saved(faster.high)};
}

void add_precision(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    const StudyRow* best = nullptr;
    for (const StudyRow& row : study.precisions)
        if (row.point != base && points.explained->of(row.point).concludes() &&
            (best == nullptr || row.latency_ms.value < best->latency_ms.value))
            best = &row;
    if (best == nullptr) return;
    const Point &slow = points.point(base), &fast = points.point(best->point);
    const StudyFigure ratio = latency_ratio(slow, base, fast, best->point);
    changes.push_back({fmt::format("Compute in {} instead of {}", name(fast.precision()), name(slow.precision())),
                       saved_by(ratio.value),
                       (Sentence() << "Measured: " << latency(fast, best->point) << " instead of "
                                   << latency(slow, base) << ", " << ratio << " times as fast.")
                           .done(),
                       "Results that are not good enough: what the model loses in accuracy is not measured here."});
}

void add_batch(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    const StudyRow* best = nullptr;
    for (const StudyRow& row : study.batches)
        if (row.point != base && points.explained->of(row.point).concludes() &&
            (best == nullptr || row.sequences_per_s > best->sequences_per_s))
            best = &row;
    if (best == nullptr) return;
    const Point &now = points.point(base), &fast = points.point(best->point);
    const StudyFigure ratio = throughput_ratio(now, base, fast, best->point);
    changes.push_back({fmt::format("Batch {} instead of {}", fast.batch(), now.batch()), saved_by(ratio.value),
                       (Sentence() << "Measured: " << throughput(fast, best->point) << " instead of "
                                   << throughput(now, base) << ", " << ratio << " times as many.")
                           .done(),
                       (Sentence() << "A limit on the time that one answer may take: a run of that batch takes "
                                   << latency(fast, best->point) << ".")
                           .done()
                           .text});
}

/// The share of its longest demand in a layer's time; nothing where no roof is known.
std::optional<double> reached(const StudyLayer& layer) {
    if (!layer.recoverable_us || layer.time_us.value <= 0) return std::nullopt;
    return 1 - layer.recoverable_us->value / layer.time_us.value;
}

/// A layer that comes less near to its roofs than another one that the same thing binds: as near as that one it would
/// take less. All of what is above its roofs is the most that can be won.
void add_layers(const StudyPoints& points, const Study& study, std::size_t base, std::vector<StudyChange>& changes) {
    const Point& point = points.point(base);
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
        const StudyFigure share = layer_share(point, base, layer.name);
        changes.push_back(
            {fmt::format("A faster {} ({})", layer.name, layer.kernel),
             {expected_us / all_us, 0, layer.recoverable_us->high / all_us},
             (Sentence() << "It has " << share << " of the time and "
                         << recoverable_time(base, layer, share.has_interval) << " above what its roofs demand; "
                         << example->name << ", with the same verdict, comes nearer to its "
                         << "own.")
                 .done(),
             fmt::format(
                 "The same work in another kernel (kbench micro --op …) that is no faster; or a unit without a roof here that keeps {} busy.",
                 layer.name)});
    }
}

void add_gaps(const StudyPoints& points, std::size_t base, std::vector<StudyChange>& changes) {
    const Ledger& ledger = points.explained->of(base).ledger;
    if (!ledger.unavailable.empty() || ledger.end_to_end_us <= 0) return;
    const double share = ledger.total.gaps_us() / ledger.end_to_end_us;
    if (share <= 0) return;
    changes.push_back({"Fewer and longer kernels",
                       {share, 0, share},
                       (Sentence() << "Between kernels the device waits for " << gap_share(base, share)
                                   << " of the time, which is the most that fusing them can save.")
                           .done(),
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
    if (changes.size() > most_changes) changes.erase(changes.begin() + most_changes, changes.end());
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
        const WhatIfMachine there = what_if_machine(machine);
        if ((own != nullptr && own->id == machine.id) || !why_not_between(here, there).empty()) continue;
        WhatIf answer = what_if(point, points.explained->of(*study.base).ledger, here, there);
        if (answer.unavailable.empty() && answer.there_ms.value > 0) all.push_back(std::move(answer));
    }
    std::ranges::stable_sort(all, {}, [](const WhatIf& answer) { return answer.there_ms.value; });
    return all;
}

}  // namespace kbench
