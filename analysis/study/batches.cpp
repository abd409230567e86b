// What a larger batch does: throughput, what binds, where it turns, energy, and the largest that fits.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/point_roofs.h"
#include "analysis/result/frames.h"
#include "analysis/study/parts.h"

namespace kbench {
namespace {

/// A batch is enough where it reaches this part of the best throughput.
constexpr double enough = 0.90;

bool is_roof(Bound bound) { return bound == Bound::bandwidth || bound == Bound::compute; }
bool is_before_roofs(Bound bound) {
    return bound == Bound::latency || bound == Bound::launch || bound == Bound::occupancy;
}

/// What the largest batch that fits is, and whether it ran.
std::string largest_text(const StudyPoints& points, const std::vector<StudyRow>& rows) {
    for (const StudyRow& row : rows)
        if (const Point& point = points.point(row.point); point.batch_is_max)
            return fmt::format("The largest batch that fits is {}: it ran.", point.batch());
    for (const StudyRow& row : rows)
        for (const LargestBatch& largest : points.point(row.point).largest_batches)
            if (largest.direction == "fwd")
                return fmt::format("The largest batch that fits is {} by the plan of its memory; it was not run.",
                                   largest.batch);
    return "The largest batch that fits is not known.";
}

/// "up to batch 4 it is latency-bound; from batch 8 on compute-bound (fp16_tensor)". By the rules of verdicts alone: a
/// batch of which they cannot tell says nothing of its neighbours.
std::string turn_text(const StudyPoints& points, const std::vector<StudyRow>& rows) {
    const auto bound = [&](const StudyRow& row) { return points.explanation(row.point).verdicts.model.bound; };
    const auto behind = std::ranges::find_if(rows, is_roof, bound);
    auto before = behind;  // the last one ahead of it
    for (auto row = rows.begin(); row != behind; ++row)
        if (is_before_roofs(bound(*row))) before = row;
    const auto text = [&](auto row) { return verdict_text(points.explanation(row->point).verdicts.model); };
    const auto batch = [&](auto row) { return points.point(row->point).batch(); };
    if (before != behind && behind != rows.end())
        return fmt::format("Up to batch {} it is {}; from batch {} on it is bound by a roof: {}.", batch(before),
                           text(before), batch(behind), text(behind));
    if (behind != rows.end())
        return fmt::format("Batch {} is the smallest that is known to be bound by a roof: {}.", batch(behind),
                           text(behind));
    if (before != behind)
        return fmt::format("It is not known to be bound by a roof at any of these batches; at batch {} it is {}.",
                           batch(before), text(before));
    return "The bottleneck of the whole is unknown at each of these batches: no one thing has most of the time.";
}

}  // namespace

StudyAnswer answer_batch(const StudyPoints& points, Study& study) {
    StudyAnswer answer;
    for (const std::size_t index : points.of_task(batch_task)) study.batches.push_back(row_of(points, index));
    std::vector<StudyRow>& rows = study.batches;
    std::ranges::stable_sort(rows, {}, [&](const StudyRow& row) { return points.point(row.point).batch(); });
    if (rows.size() < 2) {
        answer.notes.push_back(fmt::format("Of {} batch{} nothing can be said of larger ones.", rows.size(),
                                           rows.size() == 1 ? "" : "es"));
        if (!rows.empty()) answer.notes.push_back(largest_text(points, rows));
        return answer;
    }
    const auto rate = [](const StudyRow& row) { return row.sequences_per_s.value_or(0); };
    const StudyRow& best = *std::ranges::max_element(rows, {}, rate);
    const StudyRow& smallest = rows.front();
    const PointAt small = points.at(smallest.point), fast = points.at(best.point);
    const StudyRow& sufficient =
        *std::ranges::find_if(rows, [&](const StudyRow& row) { return rate(row) >= enough * rate(best); });
    const StudyFigure gain = throughput_ratio(small, fast);
    if (gain.value.low <= 1) {
        StudyFinding none = told("No larger batch is certain to be faster than {}, which has {}", small.point.batch(),
                                 throughput(small));
        if (&best != &smallest) none += told("; the fastest, {}, has {} times as many", fast.point.batch(), gain);
        answer.findings.push_back(none += {"."});
    } else {
        answer.findings.push_back(
            told("Batch {} is the fastest of these with {}, {} times batch {}'s; a run of it takes {}.",
                 fast.point.batch(), throughput(fast), gain, small.point.batch(), latency(fast)));
        const PointAt at = points.at(sufficient.point);
        if (&sufficient != &best)
            answer.findings.push_back(told("Batch {} is the smallest that reaches 90 % of it: {} in {}.",
                                           at.point.batch(), throughput(at), latency(at)));
    }
    std::vector<std::size_t> indices;
    for (const StudyRow& row : rows) indices.push_back(row.point);
    if (std::string why = without_ground(points, indices); !why.empty()) answer.notes.push_back(std::move(why));
    answer.findings.push_back({turn_text(points, rows)});
    answer.findings.push_back({largest_text(points, rows)});
    if (smallest.energy_j && best.energy_j && *smallest.energy_j > 0 && &best != &smallest)
        answer.findings.push_back(told("{} takes {} times the energy at batch {} that it takes at batch {}.",
                                       sequence_word(small.point) == "utterance" ? "An utterance" : "A sequence",
                                       energy_ratio(small, fast), fast.point.batch(), small.point.batch()));
    else if (!smallest.energy_j)
        answer.notes.push_back("Energy is not known here: see each point's conditions.");
    return answer;
}

}  // namespace kbench
