// Estimates a point's time from the points before it, and leaves out what does not fit in the budget.
#include "bench/measure/study/budget.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "bench/measure/point/progress.h"
#include "models/base/format.h"

namespace kbench {
std::optional<double> PointTimes::expected_s(double work) const {
    if (known_.empty()) return std::nullopt;
    const auto distance = [&](const Known& known) { return std::abs(std::log(work / known.work)); };
    const Known& nearest = *std::ranges::min_element(known_, {}, distance);
    double runs = most_runs_of_a_point, besides_s = 0;  // no point ran it more often than it had time for
    for (const Known& known : known_) runs = std::min(runs, known.wall_s / known.run_s);
    for (const Known& known : known_) besides_s = std::max(besides_s, known.wall_s - runs * known.run_s);
    return besides_s + runs * nearest.run_s * work / nearest.work;
}

StudyGate::StudyGate(std::vector<StudyPoint> points, StudyPlan& plan, std::function<double(const PointSpec&)> work,
                     Clock::time_point start, std::function<void(const std::string&)> tell,
                     std::function<Clock::time_point()> now)
    : points_(std::move(points)),
      plan_(plan),
      work_(std::move(work)),
      start_(start),
      tell_(std::move(tell)),
      now_(std::move(now)),
      is_settled_(points_.size(), false) {
    for (std::size_t i = 0; i < points_.size(); ++i) is_settled_[i] = !plan_.points.at(i).left_out.empty();
}

std::size_t StudyGate::index_of(const PointSpec& spec) const {
    return static_cast<std::size_t>(std::ranges::find(points_, spec, &StudyPoint::spec) - points_.begin());
}

double StudyGate::work_of(std::size_t point) const {
    if (works_.empty())
        for (const StudyPoint& each : points_) works_.push_back(work_(each.spec));
    return works_[point];
}

std::optional<double> StudyGate::expected_s(std::size_t point) const {
    const auto own = times_.find(points_[point].spec.axes.text("direction"));
    return (own == times_.end() ? all_times_ : own->second).expected_s(work_of(point));
}

double StudyGate::seconds_since(Clock::time_point then) const {
    return std::chrono::duration<double>(now_() - then).count();
}

std::size_t StudyGate::answers(double left_s, const std::set<std::string>& answered, std::size_t after) const {
    std::map<std::string, double> quickest;
    for (std::size_t i = after + 1; i < points_.size(); ++i) {
        if (is_settled_[i] || work_of(i) <= 0) continue;
        const std::optional<double> expected = expected_s(i);
        for (const std::string& task : points_[i].tasks) {
            if (!expected || answered.count(task) > 0) continue;
            const auto [known, is_first] = quickest.emplace(task, *expected);
            if (!is_first) known->second = std::min(known->second, *expected);
        }
    }
    std::vector<double> seconds;
    for (const auto& [task, s] : quickest) seconds.push_back(s);
    std::ranges::sort(seconds);
    std::size_t count = 0;
    while (count < seconds.size() && seconds[count] <= left_s) left_s -= seconds[count++];
    return count;
}

std::vector<bool> StudyGate::choice(double left_s, std::size_t first) const {
    std::vector<bool> taken(points_.size(), false);
    std::set<std::string> answered = answered_;
    for (std::size_t i = first; i < points_.size(); ++i) {
        if (is_settled_[i] || work_of(i) <= 0) continue;
        const std::optional<double> expected = expected_s(i);
        if (!expected || *expected > left_s) continue;
        std::set<std::string> with = answered;
        with.insert(points_[i].tasks.begin(), points_[i].tasks.end());
        const std::size_t own = with.size() - answered.size();
        if (answers(left_s, answered, i) > own + answers(left_s - *expected, with, i)) continue;
        taken[i] = true;
        left_s -= *expected;
        answered = std::move(with);
    }
    return taken;
}

std::string StudyGate::forecast() const {
    double all_s = 0;
    std::size_t points = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        if (is_settled_[i] || work_of(i) <= 0) continue;
        all_s += expected_s(i).value_or(0);
        ++points;
    }
    if (points == 0) return "";
    const std::string all = fmt::format("{} to come would take about {}",
                                        plural(static_cast<std::int64_t>(points), "point"), rough_time(all_s));
    if (!plan_.budget_s) return all;
    const std::vector<bool> taken = choice(*plan_.budget_s - seconds_since(start_), 0);
    const auto fits = static_cast<std::size_t>(std::ranges::count(taken, true));
    if (fits == points) return all;
    std::vector<std::string> unanswered;
    for (std::size_t i = 0; i < points_.size(); ++i)
        for (const std::string& task : points_[i].tasks) {
            const auto has_task = [&](std::size_t j) { return std::ranges::count(points_[j].tasks, task) > 0; };
            bool is_answered = answered_.count(task) > 0, is_asked = false;
            for (std::size_t j = 0; j < points_.size(); ++j) {
                is_answered = is_answered || (taken[j] && has_task(j));
                is_asked = is_asked || (!is_settled_[j] && has_task(j));
            }
            if (is_asked && !is_answered && std::ranges::count(unanswered, task) == 0) unanswered.push_back(task);
        }
    return fmt::format("{}; --budget has time for {} of them{}", all,
                       fits == 0 ? "none" : fmt::format("about {}", fits),
                       unanswered.empty() ? "" : fmt::format(", and for nothing of {}", fmt::join(unanswered, ", ")));
}

std::string StudyGate::leave_out(const PointSpec& spec) {
    begun_ = now_();
    const std::size_t i = index_of(spec);
    const double work = work_of(i);
    if (!plan_.budget_s || work <= 0) return "";
    const double left = *plan_.budget_s - seconds_since(start_);
    const std::optional<double> expected = expected_s(i);
    if (!expected || choice(left, i)[i]) return "";
    plan_.points[i].left_out =
        left <= 0 ? "the budget was used up"
        : *expected > left
            ? fmt::format("it would have taken about {}, and {} of the budget were left", rough_time(*expected),
                          rough_time(left))
            : fmt::format("it would have taken about {}, in which more of the other questions get an answer",
                          rough_time(*expected));
    is_settled_[i] = true;
    begun_.reset();
    return plan_.points[i].left_out;
}

std::optional<double> StudyGate::left_s() const {
    double sum = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        if (is_settled_[i]) continue;
        const double work = work_of(i);
        if (work <= 0) continue;
        const std::optional<double> expected = expected_s(i);
        if (!expected) return std::nullopt;
        sum += *expected;
    }
    if (plan_.budget_s) sum = std::min(sum, std::max(0.0, *plan_.budget_s - seconds_since(start_)));
    return sum;
}

std::string StudyGate::label(const PointSpec& spec) const {
    const std::size_t i = index_of(spec);
    const std::optional<double> left = left_s();
    return fmt::format("{} {}/{}{}", points_[i].tasks.front(), i + 1, points_.size(),
                       left ? fmt::format(", about {} left", rough_time(*left)) : "");
}

void StudyGate::finished(const PointSpec& spec, const Point& point) {
    const std::size_t i = index_of(spec);
    is_settled_[i] = true;
    double wall_s = 0;
    const bool was_measured = begun_.has_value();
    if (begun_)
        wall_s = seconds_since(*begun_);
    else  // by an earlier run
        for (const auto& [phase, seconds] : point.phase_seconds) wall_s += seconds;
    begun_.reset();
    if (!point.end_to_end) return;
    const double run_s = point.end_to_end->latency.summary_ms.median * 1e-3;
    if (run_s <= 0) return;
    if (i > 0) answered_.insert(points_[i].tasks.begin(), points_[i].tasks.end());
    const bool is_first = was_measured && !all_times_.expected_s(1);  // nobody knows what a resumed study has done
    all_times_.add(work_of(i), run_s, wall_s);
    times_[spec.axes.text("direction")].add(work_of(i), run_s, wall_s);
    if (const std::string text = is_first ? forecast() : ""; !text.empty()) tell_(text);
}

}  // namespace kbench
