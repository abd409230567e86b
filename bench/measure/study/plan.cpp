// Chooses the points that answer a study's questions, the most telling first.
#include "bench/measure/study/plan.h"

#include <algorithm>
#include <string_view>

#include "analysis/study/tasks.h"
#include "bench/measure/sweep/point_plans.h"

namespace kbench {
namespace {

/// Batches, the most telling first.
std::vector<std::int64_t> batches_of(const StudyBase& base, std::int64_t largest) {
    if (!base.batches.empty()) return base.batches;
    std::vector<std::int64_t> first, between;
    int power = 0;
    for (std::int64_t batch = 1; batch <= largest; batch *= 2, ++power)
        if (batch != largest) (power % 2 == 0 ? first : between).push_back(batch);
    if (largest > 0) first.push_back(max_batch);
    first.insert(first.end(), between.begin(), between.end());
    return first;
}

/// Those asked for, in the order of what they tell: what people train and serve in first, fp64 last.
std::vector<Precision> by_interest(const std::vector<Precision>& asked) {
    constexpr Precision order[] = {Precision::fp32, Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp64};
    std::vector<Precision> sorted;
    for (const Precision precision : order)
        if (std::ranges::find(asked, precision) != asked.end()) sorted.push_back(precision);
    return sorted;
}

class Planner {
  public:
    Planner(const RunOptions& options, const StudyBase& base) : options_(options), base_(base) {}

    void add(std::int64_t batch, Precision precision, std::string_view direction,
             std::initializer_list<std::string_view> tasks) {
        SweepOptions one = options_;
        one.values["batch"] = {batch};
        one.values["precision"] = {std::string(name(precision))};
        one.values["direction"] = {std::string(direction)};
        if (direction != "train")
            for (const Axis& axis : axes())
                if (axis.of_training || axis.of_backward) one.values.erase(std::string(axis.name));
        one.shard = one.shards = 1;
        const PointSpec spec = sweep_points(one, options_.of_model()).front();
        const auto same = std::ranges::find(points_, spec.name(), [](const StudyPoint& p) { return p.spec.name(); });
        StudyPoint& point = same == points_.end() ? points_.emplace_back(spec) : *same;
        for (const std::string_view task : tasks)
            if (std::ranges::find(point.tasks, task) == point.tasks.end()) point.tasks.emplace_back(task);
    }

    std::vector<StudyPoint> plan(std::int64_t largest, bool trains) {
        add(base_.batch, base_.precision, "fwd", {bottlenecks_task, batch_task, precision_task, directions_task});
        if (trains) add(base_.batch, base_.precision, "train", {directions_task});
        const std::vector<std::int64_t> batches = batches_of(base_, largest);
        const std::vector<Precision> precisions = by_interest(base_.precisions);
        for (std::size_t i = 0; i < std::max(batches.size(), precisions.size()); ++i) {
            if (i < precisions.size()) add(base_.batch, precisions[i], "fwd", {precision_task});
            if (i < batches.size()) add(batches[i], base_.precision, "fwd", {batch_task});
        }
        return std::move(points_);
    }

  private:
    const RunOptions& options_;
    const StudyBase& base_;
    std::vector<StudyPoint> points_;
};

}  // namespace

std::vector<StudyPoint> plan_study(const RunOptions& options, const StudyBase& base, std::int64_t largest,
                                   bool trains) {
    return Planner(options, base).plan(largest, trains);
}

StudyPlan recorded_plan(const RunOptions& options, const Device& device, const std::vector<StudyPoint>& points,
                        const std::vector<PointSpec>& mine, std::optional<double> budget_s) {
    StudyPlan plan{.budget_s = budget_s, .points = {}};
    for (const StudyPoint& point : points) {
        const Point unmeasured = unmeasured_point(options, device, point.spec);
        PlannedPoint planned{unmeasured.axes, unmeasured.batch_is_max, point.tasks, ""};
        if (planned.batch_is_max) planned.axes.erase("batch");
        if (std::ranges::find(mine, point.spec) == mine.end()) planned.left_out = "it belongs to another shard";
        plan.points.push_back(std::move(planned));
    }
    return plan;
}

}  // namespace kbench
