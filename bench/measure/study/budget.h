// How long a study's next point will take, from what the points before it took; and which it leaves out for that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/run.h"
#include "bench/measure/study/plan.h"
#include "kbench/result.h"

namespace kbench {

/// A point is expected to take what points take besides running the model, and so many of its runs at most: samples,
/// recorded and counted runs, and a verification. On an H200 a point whose forward is 4 ms takes 20 s, and
/// one whose forward is 4.5 s takes 194 s: results/h200-2026-11-22/batch-max.
inline constexpr double most_runs_of_a_point = 40;

/// Wall times of points by what a run of them takes. Work: of one run, in any unit that is the same for all.
class PointTimes {
  public:
    /// Nothing before a point is known. `work` is above 0.
    std::optional<double> expected_s(double work) const;
    void add(double work, double run_s, double wall_s) { known_.push_back({work, run_s, wall_s}); }

  private:
    struct Known {
        double work, run_s, wall_s;
    };
    std::vector<Known> known_;
};

/// A study's gate: leaves out what would not fit into the budget, and writes why into the plan of the result.
class StudyGate : public PointGate {
  public:
    using Clock = std::chrono::steady_clock;
    /// `work`: of a point, as PointTimes has it; 0 of one that is known to be refused at once. `plan` is where reasons
    /// go, point by point as `points` are, and must outlive the gate. Time counts from `start`.
    StudyGate(std::vector<StudyPoint> points, StudyPlan& plan, std::function<double(const PointSpec&)> work,
              Clock::time_point start, std::function<Clock::time_point()> now = Clock::now);

    std::string leave_out(const PointSpec& spec) override;
    std::string label(const PointSpec& spec) const override;
    void finished(const PointSpec& spec, const Point& point) override;

  private:
    std::size_t index_of(const PointSpec& spec) const;
    double work_of(std::size_t point) const;
    /// From the points of its direction; before there are any, from all.
    std::optional<double> expected_s(std::size_t point) const;
    double seconds_since(Clock::time_point then) const;
    /// Until the last point is done, as far as the points before it tell; never beyond the budget.
    std::optional<double> left_s() const;

    std::vector<StudyPoint> points_;
    StudyPlan& plan_;
    std::function<double(const PointSpec&)> work_;
    Clock::time_point start_;
    std::function<Clock::time_point()> now_;
    mutable std::vector<double> works_;  ///< by point; found when first asked for, as roofs are measured before
    PointTimes all_times_;
    std::map<std::string, PointTimes> times_;  ///< by direction: training steps are verified and counted for longer
    std::vector<bool> is_settled_;             ///< finished or left out
    std::optional<Clock::time_point> begun_;
};

}  // namespace kbench
