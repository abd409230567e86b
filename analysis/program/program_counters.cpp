#include "analysis/program/program_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kbench/statistics.h"
#include "models/base/format.h"

namespace kbench {
namespace {

using Counters = std::map<std::string, double>;

constexpr const char* timed_only = "it waits for other ranks, so it is timed only";

/// Whether the values of kernels that run one after another add up. The SMs' elapsed cycles are those of the time.
bool adds_up_over_kernels(const std::string& counter) {
    return counter.ends_with(".sum") || counter.ends_with(".avg") || counter == "sm__cycles_elapsed.max";
}

/// The launch of the recorded iteration that a counted range is of.
std::int64_t place_of(const CountedIteration& iteration, std::int64_t launch, const IterationLaunches& launches) {
    const std::int64_t place = (iteration.first_launch - launches.first + launch) % launches.count;
    return place < 0 ? place + launches.count : place;
}

bool waits(const IterationLaunches& launches, std::int64_t launch) {
    return !launches.waits.empty() && launches.waits[static_cast<std::size_t>(launch)];
}

/// Counters of each launch of an iteration. A launch index counts from the iteration in which it was counted, which may
/// begin at another launch than the recorded one.
std::vector<Counters> by_launch(const std::vector<CountedIteration>& counted, const IterationLaunches& launches) {
    std::vector<std::map<std::string, std::vector<double>>> all(static_cast<std::size_t>(launches.count));
    for (const CountedIteration& iteration : counted)
        for (const CountedIteration::Range& range : iteration.ranges) {
            const std::int64_t place = place_of(iteration, range.launch, launches);
            for (std::size_t i = 0; i < range.values.size(); ++i)
                if (range.values[i])
                    all[static_cast<std::size_t>(place)][iteration.counters[i]].push_back(*range.values[i]);
        }
    std::vector<Counters> counters(all.size());
    for (std::size_t launch = 0; launch < all.size(); ++launch)
        for (const auto& [name, values] : all[launch]) counters[launch][name] = summarise(values).median;
    return counters;
}

/// Those that all launches have and that add up, added.
Counters added_up(const std::vector<Counters>& counters, const std::vector<std::int64_t>& launches) {
    Counters sums;
    for (const auto& [name, value] : counters[static_cast<std::size_t>(launches.front())]) {
        if (!adds_up_over_kernels(name)) continue;
        double sum = 0;
        const bool has_all = std::ranges::all_of(launches, [&](std::int64_t launch) {
            const Counters& own = counters[static_cast<std::size_t>(launch)];
            const auto found = own.find(name);
            if (found != own.end()) sum += found->second;
            return found != own.end();
        });
        if (has_all) sums[name] = sum;
    }
    return sums;
}

/// Why the counters are not those of the iteration; empty where they are.
std::string why_not(const std::vector<CountedIteration>& counted, const IterationLaunches& launches) {
    if (launches.count == 0) return "the iteration has no launch whose call was recorded";
    const std::int64_t expected = launches.count - std::ranges::count(launches.waits, true);
    for (const CountedIteration& iteration : counted) {
        if (static_cast<std::int64_t>(iteration.ranges.size()) != expected)
            return fmt::format("{} were counted in an iteration of {}",
                               plural(static_cast<std::int64_t>(iteration.ranges.size()), "range"),
                               plural(expected, "launch call"));
        for (const CountedIteration::Range& range : iteration.ranges) {
            if (range.launch >= launches.count)
                return fmt::format("launch {} was counted in an iteration of {}", range.launch,
                                   plural(launches.count, "launch call"));
            if (waits(launches, place_of(iteration, range.launch, launches)))
                return fmt::format(
                    "launch {} of the counted iteration is one that waits for other ranks in the recorded",
                    range.launch);
        }
    }
    return "";
}

}  // namespace

void join_counters(std::vector<StepResult>& steps, CounterRun& run, const std::vector<CountedIteration>& counted,
                   const IterationLaunches& launches, const MetricsOf& metrics_of) {
    if (counted.empty()) {
        if (run.unavailable.empty()) run.unavailable = "no counters were asked for";
        return;
    }
    for (const CountedIteration& iteration : counted) {
        run.passes = static_cast<int>(
            std::min<std::int64_t>(std::int64_t{run.passes} + iteration.passes, std::numeric_limits<int>::max()));
        run.seconds += iteration.seconds;
    }
    run.unavailable = why_not(counted, launches);
    if (!run.unavailable.empty()) return;
    const std::vector<Counters> counters = by_launch(counted, launches);
    std::vector<int> users(counters.size());
    for (const std::vector<std::int64_t>& of_step : launches.of_step)
        for (const std::int64_t launch : of_step) ++users[static_cast<std::size_t>(launch)];
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const std::vector<std::int64_t>& own = launches.of_step[s];
        if (own.empty()) {
            steps[s].counters_discarded = "it launches no kernel";
        } else if (std::ranges::any_of(own, [&](std::int64_t launch) { return waits(launches, launch); })) {
            steps[s].counters_discarded = timed_only;
        } else if (std::ranges::any_of(own, [&](std::int64_t l) { return users[static_cast<std::size_t>(l)] > 1; })) {
            steps[s].counters_discarded = "its kernels were counted together with other steps', in one graph launch";
        } else if (metrics_of) {
            steps[s].counters =
                metrics_of(own.size() == 1 ? counters[static_cast<std::size_t>(own.front())] : added_up(counters, own));
            if (steps[s].counters.empty()) steps[s].counters_discarded = "the device gave no values";
        }
    }
}

}  // namespace kbench
