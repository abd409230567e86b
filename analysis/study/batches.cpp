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
    const auto verdict = [&](const StudyRow& row) -> const Verdict& {
        return points.explained->of(row.point).verdicts.model;
    };
    const auto batch = [&](const StudyRow& row) { return points.point(row.point).batch(); };
    const StudyRow *before = nullptr, *behind = nullptr;
    for (const StudyRow& row : rows) {
        if (is_before_roofs(verdict(row).bound) && behind == nullptr) before = &row;
        if (is_roof(verdict(row).bound) && behind == nullptr) behind = &row;
    }
    if (before != nullptr && behind != nullptr)
        return fmt::format("Up to batch {} it is {}; from batch {} on a roof binds: {}.", batch(*before),
                           verdict_text(verdict(*before)), batch(*behind), verdict_text(verdict(*behind)));
    if (behind != nullptr)
        return fmt::format("A roof binds from batch {} on, the smallest of which that can be said: {}.", batch(*behind),
                           verdict_text(verdict(*behind)));
    if (before != nullptr)
        return fmt::format("No roof is known to bind at any of these batches; at batch {} it is {}.", batch(*before),
                           verdict_text(verdict(*before)));
    return "At none of these batches can it be told what binds the whole: no one thing has most of the time.";
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
    const Point &small = points.point(smallest.point), &fast = points.point(best.point);
    const StudyRow& sufficient =
        *std::ranges::find_if(rows, [&](const StudyRow& row) { return rate(row) >= enough * rate(best); });
    const StudyFigure gain = throughput_ratio(small, smallest.point, fast, best.point);
    if (gain.value.low <= 1) {
        Sentence none;
        none << "No larger batch is certain to be faster than " << std::to_string(small.batch()) << ", which has "
             << throughput(small, smallest.point);
        if (&best != &smallest)
            none << "; the fastest, " << std::to_string(fast.batch()) << ", has " << gain << " times as many";
        answer.findings.push_back((none << ".").done());
    } else {
        answer.findings.push_back((Sentence() << "Batch " << std::to_string(fast.batch())
                                              << " is the fastest of these with " << throughput(fast, best.point)
                                              << ", " << gain << " times batch " << std::to_string(small.batch())
                                              << "'s; a run of it takes " << latency(fast, best.point) << ".")
                                      .done());
        if (&sufficient != &best) {
            const Point& enough_point = points.point(sufficient.point);
            answer.findings.push_back((Sentence() << "Batch " << std::to_string(enough_point.batch())
                                                  << " is the smallest that reaches 90 % of it: "
                                                  << throughput(enough_point, sufficient.point) << " in "
                                                  << latency(enough_point, sufficient.point) << ".")
                                          .done());
        }
    }
    std::vector<std::size_t> indices;
    for (const StudyRow& row : rows) indices.push_back(row.point);
    if (std::string why = without_ground(points, indices); !why.empty()) answer.notes.push_back(std::move(why));
    answer.findings.push_back({turn_text(points, rows), {}});
    answer.findings.push_back({largest_text(points, rows), {}});
    if (smallest.energy_j && best.energy_j && *smallest.energy_j > 0 && &best != &smallest)
        answer.findings.push_back((Sentence() << (sequence_word(small) == "utterance" ? "An utterance" : "A sequence")
                                              << " takes " << energy_ratio(small, smallest.point, fast, best.point)
                                              << " times the energy at batch " << std::to_string(fast.batch())
                                              << " that it takes at batch " << std::to_string(small.batch()) << ".")
                                      .done());
    else if (!smallest.energy_j)
        answer.notes.push_back("Energy is not known here: see each point's conditions.");
    return answer;
}

}  // namespace kbench
