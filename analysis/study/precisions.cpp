// What each precision gains, what its roofs would allow, and what proves that it ran as asked.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/executed.h"
#include "analysis/machine/ceilings.h"
#include "analysis/study/parts.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// The part of the time of matrix products of which counters show that it ran as asked. Steps that
/// did not are no evidence by then: see not_evidence.
std::string executed_text(const Point& point) {
    double all_us = 0, proven_us = 0;
    for (const StepResult& step : point.steps) {
        if (step.matrix_flops <= 0) continue;
        const double us = step.device_us().value_or(0);
        all_us += us;
        if (products_proven(step).value_or(false)) proven_us += us;
    }
    if (all_us > 0 && proven_us > 0)
        return fmt::format("counted in steps with {} of the products' time", percent(proven_us / all_us));
    if (point.backend() != "cuda") return "not proven: a CPU's counters do not tell precisions apart";
    return fmt::format("not proven: {}", point.counters.unavailable.empty() ? "operations were not counted by type"
                                                                            : point.counters.unavailable);
}

/// The precision that the others are set against: fp32 where it is there, as checkpoints have it.
std::size_t reference_of(const StudyPoints& points, const std::vector<std::size_t>& indices) {
    for (const std::size_t index : indices)
        if (points.point(index).precision() == Precision::fp32) return index;
    return indices.front();
}

}  // namespace

StudyAnswer answer_precision(const StudyPoints& points, Study& study) {
    StudyAnswer answer;
    std::vector<std::size_t> indices = points.of_task(precision_task);
    std::ranges::stable_sort(indices, {}, [&](std::size_t index) { return points.point(index).precision(); });
    if (indices.empty()) {
        answer.notes.push_back("No precision was measured.");
        return answer;
    }
    const PointAt slow = points.at(reference_of(points, indices));
    const Roofs roofs(points.explained->result());
    const std::optional<Roof> own = roofs.matrix(slow.point.precision());
    for (const std::size_t index : indices) {
        const PointAt at = points.at(index);
        StudyRow row = row_of(points, index);
        row.executed = executed_text(at.point);
        if (index != slow.index) {
            const StudyFigure speed_up = latency_ratio(slow, at);
            row.speed_up = speed_up.value;
            StudyFinding sentence = told("{} is {} times as fast as {}", name(at.point.precision()), speed_up,
                                         name(slow.point.precision()));
            if (const std::optional<Roof> roof = roofs.matrix(at.point.precision()); roof && own) {
                const StudyFigure higher = roof_ratio(*own, slow.index, *roof, index);
                row.roof_ratio = higher.value.value;
                const bool sees_less = higher.value.low > 1 && speed_up.value.high < higher.value.low;
                sentence += told("; its measured peak for matrix products is {} times as high{}", higher,
                                 sees_less ? ", so the model gains less" : "");
            }
            answer.findings.push_back(sentence += {fmt::format(" ({}).", row.executed)});
        }
        study.precisions.push_back(std::move(row));
    }
    if (indices.size() == 1)
        answer.notes.push_back(
            fmt::format("{} alone was measured: nothing can be said of others.", name(slow.point.precision())));
    return answer;
}

}  // namespace kbench
