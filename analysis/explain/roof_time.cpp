// Arithmetic on roof times: which is longest, what all have together, sums over steps.
#include "analysis/explain/roof_time.h"

#include <algorithm>

namespace kbench {
namespace {

void add_to(std::vector<RoofTimeSum>& sums, std::string_view name, bool is_busy_time, const Interval& us) {
    const auto is_it = [&](const RoofTimeSum& sum) { return sum.name == name && sum.is_busy_time == is_busy_time; };
    auto found = std::ranges::find_if(sums, is_it);
    if (found == sums.end()) found = sums.insert(sums.end(), RoofTimeSum{std::string(name), is_busy_time, {}});
    found->us += us;
}

/// Longest first, then units, busiest first.
void sort_roofs_first(std::vector<RoofTimeSum>& sums) {
    std::ranges::stable_sort(sums, [](const RoofTimeSum& a, const RoofTimeSum& b) {
        return a.is_busy_time != b.is_busy_time ? b.is_busy_time : a.us.value > b.us.value;
    });
}

}  // namespace

bool RoofTime::is_memory() const { return level || unit == unit::shared_memory; }

double RoofTime::least_us(Workers workers) const {
    return workers == Workers::threads && roof.high_per_s > roof.per_s ? us * roof.per_s / roof.high_per_s : us;
}

std::string_view RoofTime::name() const {
    if (level) return kbench::name(*level);
    return unit.empty() ? std::string_view(roof.ceiling) : unit;
}

void sort_longest_first(std::vector<RoofTime>& roof_times) {
    std::ranges::stable_sort(roof_times, std::greater{},
                             [](const RoofTime& roof_time) { return roof_time.run_us.value; });
}

bool are_tied(const std::vector<RoofTime>& roof_times) {
    return roof_times.size() > 1 && roof_times[1].run_us.value > 0 &&
           roof_times[1].run_us.high >= roof_times[0].run_us.low;
}

double StepRoofTimes::binding_share(double time_us) const {
    return binding() != nullptr && time_us > 0 ? binding()->us / time_us : 0;
}

const RoofTime* StepRoofTimes::at(std::optional<Level> level) const {
    const auto found = std::ranges::find(work, level, &RoofTime::level);
    return found == work.end() ? nullptr : &*found;
}

std::vector<RoofTime> StepRoofTimes::all() const {
    std::vector<RoofTime> both = work;
    both.insert(both.end(), units.begin(), units.end());
    sort_longest_first(both);
    return both;
}

Interval StepRoofTimes::together() const {
    Interval sum;
    for (const auto* list : {&work, &units})
        for (const RoofTime& roof_time : *list) sum += roof_time.run_us;
    return sum;
}

void RoofTimeSums::add(const StepRoofTimes& roof_times, double time_us, std::span<const BusyUnit> units,
                       double active_us) {
    const std::vector<RoofTime> all = roof_times.all();
    for (const RoofTime& roof_time : all) add_to(by_roof, roof_time.name(), false, roof_time.run_us);
    for (const BusyUnit& unit : units) {
        const double us = unit.share * (unit.of_active ? active_us : time_us);
        add_to(by_roof, unit.name, true, {us, us * (1 - count_tolerance), us * (1 + count_tolerance)});
    }
    sort_roofs_first(by_roof);
    if (all.empty()) return;
    Interval longest = all.front().run_us;
    for (const RoofTime& roof_time : all) {
        longest.low = std::max(longest.low, roof_time.run_us.low);
        longest.high = std::max(longest.high, roof_time.run_us.high);
    }
    longest_us += longest;
    if (!roof_times.work.empty()) useful_us += roof_times.work.front().us;
    if (are_tied(all)) tied_us += time_us;
}

RoofTimeSums& RoofTimeSums::operator+=(const RoofTimeSums& other) {
    for (const RoofTimeSum& sum : other.by_roof) add_to(by_roof, sum.name, sum.is_busy_time, sum.us);
    sort_roofs_first(by_roof);
    longest_us += other.longest_us;
    useful_us += other.useful_us;
    tied_us += other.tied_us;
    return *this;
}

const RoofTimeSum* RoofTimeSums::longest() const {
    return by_roof.empty() || by_roof.front().is_busy_time || by_roof.front().us.value <= 0 ? nullptr
                                                                                            : &by_roof.front();
}

}  // namespace kbench
