// What training adds to a forward: of one training step, in which both stand side by side.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/study/parts.h"
#include "models/base/format.h"

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
    const Point& point = points.point(index);
    const Explanation& explanation = points.explained->of(index);
    const DirectionSource source{&point, &explanation.ledger, &explanation.verdicts};
    study.training = index;
    study.directions = forward_against_backward(source, source);
    const Directions& directions = study.directions;
    if (!directions.unavailable.empty() || !directions.whole.time_ratio()) {
        answer.notes.push_back(directions.unavailable.empty() ? "Its steps were not timed."
                                                              : directions.unavailable + ".");
        return answer;
    }
    Sentence whole;
    whole << "A training step takes " << latency(point, index) << ", with " << part_share(directions, index, "backward")
          << " of the steps' time in the backward";
    if (!directions.optimizer.empty())
        whole << " and " << part_share(directions, index, "optimizer") << " in the optimizer";
    answer.findings.push_back((whole << ".").done());
    Sentence ratio;
    ratio << "The backward takes " << backward_ratio(directions, index) << " times as long as the forward within it";
    if (directions.whole.flop_ratio())
        ratio << ", for " << backward_flop_ratio(directions, index) << " times its FLOPs";
    answer.findings.push_back((ratio << ".").done());
    std::size_t told = 0;
    for (const DirectionPair& kind : directions.by_op) {
        if (told == told_kinds || !kind.time_ratio()) continue;
        ++told;
        answer.findings.push_back((Sentence() << kind.name << ": the backward takes " << backward_ratio_of(kind, index)
                                              << " times its forward's time.")
                                      .done());
    }
    if (const std::optional<std::size_t> base = study.base) {
        const Point& forward = points.point(*base);
        answer.findings.push_back((Sentence() << "A training step takes " << latency_ratio(point, index, forward, *base)
                                              << " times as long as a forward alone.")
                                      .done());
    }
    return answer;
}

}  // namespace kbench
