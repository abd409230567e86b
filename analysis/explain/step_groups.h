// Steps summed by name, in a run of all of them: what every account of an intervention begins with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/facts/point_facts.h"

namespace kbench {

inline Interval sum_of_steps(const std::vector<Interval>& step_us, const std::vector<std::size_t>& steps) {
    Interval total;
    for (const std::size_t s : steps) total += step_us[s];
    return total;
}

/// ln(us / base_us), the ends taken apart as far as they go. Both intervals must be positive.
inline Interval log_ratio(const Interval& us, const Interval& base_us) {
    const Interval ratio = quotient(us, base_us);
    return {std::log(ratio.value), std::log(ratio.low), std::log(ratio.high)};
}

/// Whether the step ran kernels in every one of the runs: SmTimes, TheftTimes.
template <class Run>
bool ran_in_all(const std::vector<Run>& runs, std::size_t step) {
    return std::ranges::all_of(runs, [&](const Run& run) { return run.step_us[step].low > 0; });
}

/// make_group(name, steps) of each name's steps that ran in every one of the runs; longest first, by its `us`.
template <class Run, class MakeGroup>
auto groups_longest_first(const std::vector<NamedSteps>& named, const std::vector<Run>& runs, MakeGroup make_group) {
    std::vector<decltype(make_group(std::string(), std::vector<std::size_t>()))> groups;
    for (auto [name, steps] : named) {
        std::erase_if(steps, [&](std::size_t step) { return !ran_in_all(runs, step); });
        if (!steps.empty()) groups.push_back(make_group(std::move(name), std::move(steps)));
    }
    std::ranges::stable_sort(groups, std::greater{}, [](const auto& group) { return group.us.value; });
    return groups;
}

}  // namespace kbench
