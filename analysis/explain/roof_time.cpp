// Arithmetic on demands: which is longest, what all have together, sums over steps.
#include "analysis/explain/roof_time.h"

#include <algorithm>

namespace kbench {
namespace {

void add_to(std::vector<DemandSum>& sums, std::string_view name, bool is_busy_time, const Interval& us) {
    const auto is_it = [&](const DemandSum& sum) { return sum.name == name && sum.is_busy_time == is_busy_time; };
    auto found = std::ranges::find_if(sums, is_it);
    if (found == sums.end()) found = sums.insert(sums.end(), DemandSum{std::string(name), is_busy_time, {}});
    found->us += us;
}

/// Longest first, then units, busiest first.
void sort_roofs_first(std::vector<DemandSum>& sums) {
    std::ranges::stable_sort(sums, [](const DemandSum& a, const DemandSum& b) {
        return a.is_busy_time != b.is_busy_time ? b.is_busy_time : a.us.value > b.us.value;
    });
}

}  // namespace

bool Demand::is_memory() const { return level || unit == unit::shared_memory; }

std::string_view Demand::name() const {
    if (level) return kbench::name(*level);
    return unit.empty() ? std::string_view(roof.ceiling) : unit;
}

void sort_longest_first(std::vector<Demand>& demands) {
    std::ranges::stable_sort(demands, std::greater{}, [](const Demand& demand) { return demand.run_us.value; });
}

bool are_tied(const std::vector<Demand>& demands) {
    return demands.size() > 1 && demands[1].run_us.value > 0 && demands[1].run_us.high >= demands[0].run_us.low;
}

double StepDemands::binding_share(double time_us) const {
    return binding() != nullptr && time_us > 0 ? binding()->us / time_us : 0;
}

const Demand* StepDemands::at(std::optional<Level> level) const {
    const auto found = std::ranges::find(work, level, &Demand::level);
    return found == work.end() ? nullptr : &*found;
}

std::vector<Demand> StepDemands::all() const {
    std::vector<Demand> both = work;
    both.insert(both.end(), units.begin(), units.end());
    sort_longest_first(both);
    return both;
}

Interval StepDemands::together() const {
    Interval sum;
    for (const auto* list : {&work, &units})
        for (const Demand& demand : *list) sum += demand.run_us;
    return sum;
}

void DemandSums::add(const StepDemands& demands, double time_us, std::span<const BusyUnit> units, double active_us) {
    const std::vector<Demand> all = demands.all();
    for (const Demand& demand : all) add_to(by_roof, demand.name(), false, demand.run_us);
    for (const BusyUnit& unit : units) {
        const double us = unit.share * (unit.of_active ? active_us : time_us);
        add_to(by_roof, unit.name, true, {us, us * (1 - count_tolerance), us * (1 + count_tolerance)});
    }
    sort_roofs_first(by_roof);
    if (all.empty()) return;
    Interval longest = all.front().run_us;
    for (const Demand& demand : all) {
        longest.low = std::max(longest.low, demand.run_us.low);
        longest.high = std::max(longest.high, demand.run_us.high);
    }
    longest_us += longest;
    if (!demands.work.empty()) useful_us += demands.work.front().us;
    if (are_tied(all)) tied_us += time_us;
}

DemandSums& DemandSums::operator+=(const DemandSums& other) {
    for (const DemandSum& sum : other.by_roof) add_to(by_roof, sum.name, sum.is_busy_time, sum.us);
    sort_roofs_first(by_roof);
    longest_us += other.longest_us;
    useful_us += other.useful_us;
    tied_us += other.tied_us;
    return *this;
}

const DemandSum* DemandSums::longest() const {
    return by_roof.empty() || by_roof.front().is_busy_time || by_roof.front().us.value <= 0 ? nullptr
                                                                                            : &by_roof.front();
}

}  // namespace kbench
