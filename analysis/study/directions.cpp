// What training adds to a forward: from one training step, in which both stand side by side.

#include <algorithm>
#include <ranges>

#include "analysis/study/parts.h"

namespace kbench {
namespace {

/// Op kinds that are told in words; the table has all.
constexpr std::size_t told_kinds = 2;

}  // namespace

StudyAnswer answer_directions(const StudyPoints& points, Study& study) {
    StudyAnswer answer;
    const std::vector<std::size_t> indices = points.of_task(directions_task);
    const auto trains = [&](std::size_t index) { return points.point(index).direction() == "train"; };
    const auto training = std::ranges::find_if(indices, trains);
    if (training == indices.end()) {
        const auto has_training = [](const PlannedPoint& planned) { return planned.axes.text("direction") == "train"; };
        answer.notes.push_back(std::ranges::any_of(points.plan().points, has_training)
                                   ? "The training step is no evidence: see the points left aside."
                                   : "The model has no loss to train with.");
        return answer;
    }
    const std::size_t index = *training;
    const PointAt at = points.at(index);
    const Explanation& explanation = points.explanation(index);
    study.training = index;
    study.directions = forward_against_backward(&explanation, explanation);
    const Directions& directions = study.directions;
    if (!directions.unavailable.empty() || !directions.whole.time_ratio()) {
        answer.notes.push_back(directions.unavailable.empty() ? "Its steps were not timed."
                                                              : directions.unavailable + ".");
        return answer;
    }
    StudyFinding whole = told("A training step takes {}, with {} of the steps' time in the backward", latency(at),
                              part_share(directions, index, "backward"));
    if (!directions.optimizer.empty())
        whole += told(" and {} in the optimizer", part_share(directions, index, "optimizer"));
    answer.findings.push_back(whole += {"."});
    StudyFinding ratio =
        told("The backward takes {} times as long as the forward within it", backward_ratio(directions.whole, index));
    if (directions.whole.flop_ratio())
        ratio += told(", for {} times its FLOPs", backward_flop_ratio(directions, index));
    answer.findings.push_back(ratio += {"."});
    const auto has_ratio = [](const DirectionPair& kind) { return kind.time_ratio().has_value(); };
    for (const DirectionPair& kind : directions.by_op | std::views::filter(has_ratio) | std::views::take(told_kinds))
        answer.findings.push_back(
            told("{}: the backward takes {} times its forward's time.", kind.name, backward_ratio(kind, index)));
    if (study.base)
        answer.findings.push_back(told("A training step takes {} times as long as a forward alone.",
                                       latency_ratio(at, points.at(*study.base))));
    return answer;
}

}  // namespace kbench
