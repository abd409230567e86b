// What each precision gains, what its roofs would allow, and what proves that it ran as asked.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/executed.h"
#include "analysis/machine/ceilings.h"
#include "analysis/study/parts.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Of the time of the steps that multiply matrices, the part of which counters show that it ran as asked. Steps that
/// did not are no evidence by then: see not_evidence.
std::string executed_text(const Point& point) {
    double all_us = 0, proven_us = 0;
    for (const StepResult& step : point.steps) {
        if (step.matrix_flops <= 0) continue;
        const double us = step.device_us().value_or(0);
        all_us += us;
        const Counters counters = counters_of(step);
        const std::optional<double> tensor = tensor_flops(counters, proof_type(step.precision));
        // Plain cores need not be counted where tensor cores' operations say it: fp64 has both.
        const double executed = std::max(tensor_flops(counters, step.precision).value_or(0),
                                         executed_flops(counters, step.precision).value_or(0));
        const bool is_proven = step.precision == Precision::fp32 ? tensor && *tensor == 0 : executed > 0;
        if (is_proven) proven_us += us;
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
    const std::size_t reference = reference_of(points, indices);
    const Point& slow = points.point(reference);
    const Roofs roofs(points.explained->result());
    const std::optional<Roof> own = roofs.matrix(slow.precision());
    for (const std::size_t index : indices) {
        const Point& point = points.point(index);
        StudyRow row = row_of(points, index);
        row.executed = executed_text(point);
        if (index != reference) {
            const StudyFigure speed_up = latency_ratio(slow, reference, point, index);
            row.speed_up = speed_up.value;
            const std::optional<Roof> roof = roofs.matrix(point.precision());
            std::optional<StudyFigure> roofs_ratio;
            if (roof && own) roofs_ratio = roof_ratio(*own, reference, *roof, index);
            if (roofs_ratio) row.roof_ratio = roofs_ratio->value.value;
            Sentence sentence;
            sentence << name(point.precision()) << " is " << speed_up << " times as fast as " << name(slow.precision());
            if (roofs_ratio) {
                const bool sees_less = roofs_ratio->value.low > 1 && speed_up.value.high < roofs_ratio->value.low;
                sentence << "; its measured roof for products is " << *roofs_ratio << " times as high"
                         << (sees_less ? ", more than the model gains" : "");
            }
            sentence << " (" << row.executed << ").";
            answer.findings.push_back(sentence.done());
        }
        study.precisions.push_back(std::move(row));
    }
    if (indices.size() == 1)
        answer.notes.push_back(
            fmt::format("{} alone was measured: nothing can be said of others.", name(slow.precision())));
    return answer;
}

}  // namespace kbench
