// How long a study's points will take, from what those before them took; and which are left out for that, so that as
// many questions as the budget has time for get an answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/measure/study/plan.h"
#include "bench/measure/sweep/run.h"
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
    /// go, point by point as `points` are, and must outlive the gate. Time counts from `start`. `tell` gets the
    /// forecast as soon as there is one.
    StudyGate(std::vector<StudyPoint> points, StudyPlan& plan, std::function<double(const PointSpec&)> work,
              Clock::time_point start, std::function<void(const std::string&)> tell,
              std::function<Clock::time_point()> now = Clock::now);

    std::string leave_out(const PointSpec& spec) override;
    std::string label(const PointSpec& spec) const override;
    void finished(const PointSpec& spec, const Point& point) override;

  private:
    std::size_t index_of(const PointSpec& spec) const;
    double work_of(std::size_t point) const;
    /// From the points of its direction; before there are any, from all.
    std::optional<double> expected_s(std::size_t point) const;
    double seconds_since(Clock::time_point then) const;
    /// How many questions without an answer get one in that time by points behind the one at `after`, each by its
    /// quickest.
    std::size_t answers(double left_s, const std::set<std::string>& answered, std::size_t after) const;
    /// Which points from `first` on are measured in that time, as far as the points before them tell: in their order,
    /// but for one that fits and would take the time of more questions than it answers.
    std::vector<bool> choice(double left_s, std::size_t first) const;
    /// How long the points to come take, and what of them the budget has time for.
    std::string forecast() const;
    /// Until the last point is done, as far as the points before it tell; never beyond the budget.
    std::optional<double> left_s() const;

    std::vector<StudyPoint> points_;
    StudyPlan& plan_;
    std::function<double(const PointSpec&)> work_;
    Clock::time_point start_;
    std::function<void(const std::string&)> tell_;
    std::function<Clock::time_point()> now_;
    mutable std::vector<double> works_;  ///< by point; found when first asked for, as roofs are measured before
    PointTimes all_times_;
    std::map<std::string, PointTimes> times_;  ///< by direction: training steps are verified and counted for longer
    std::vector<bool> is_settled_;             ///< finished or left out
    /// Questions that have a point besides the first, which all of them share.
    std::set<std::string> answered_;
    std::optional<Clock::time_point> begun_;
};

}  // namespace kbench
