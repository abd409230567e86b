// See demands.h.
#include "analysis/explain/demands.h"

#include <algorithm>

#include "analysis/explain/executed.h"
#include "analysis/explain/units.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

constexpr double sector_bytes = 32, wavefront_bytes = 128;

/// A unit of the SM that has a roof but no place in a cost model.
struct UnitWork {
    std::string_view unit, ceiling;
    CounterOf counter;
    double of_one;  ///< of what the ceiling counts
};
constexpr UnitWork unit_work[] = {{shared_memory, "shared_read", &Counters::shared_wavefronts, wavefront_bytes},
                                  {special_functions, "special", &Counters::xu_inst, 1},
                                  {load_store, "load_store", &Counters::lsu_inst, 1}};

void sort_longest_first(std::vector<Demand>& demands) {
    std::ranges::stable_sort(demands, std::greater{}, [](const Demand& demand) { return demand.run_us.value; });
}

/// Whether tensor cores do most of the step's FLOPs: as its kind says; of kinds that this kbench does not know, as
/// their products do.
bool is_matrix_product(const StepResult& step) {
    const OpKind* kind = find_op_kind(step.op);
    // A result may be of another kbench, or of a user's kind: what is not known here, what it computed with says.
    if (kind == nullptr || !kind->has(step.direction)) return step.matrix_flops > 0;
    return kind->unit(step.direction) == RoofUnit::matrix;
}

/// Tensor cores worked, and none of it was wgmma where the chip has it.
bool is_by_mma_sync(const Counters& counters) {
    return counters.tensor_wgmma_inst == 0.0 && counters.tensor_pipe_inst.value_or(0) > 0;
}

std::optional<Roof> unit_roof(const StepResult& step, const Roofs& roofs) {
    if (!is_matrix_product(step)) return roofs.plain(step.precision);
    return is_by_mma_sync(counters_of(step)) ? roofs.matrix_by_mma_sync(step.precision) : roofs.matrix(step.precision);
}

struct Bytes {
    double bytes;
    Origin origin;
};

std::optional<Bytes> bytes_at(const StepResult& step, Level level, Origin dram) {
    const auto counted = [](std::optional<double> value) {
        return value ? std::optional(Bytes{*value, Origin::measured}) : std::nullopt;
    };
    const Counters counters = counters_of(step);
    switch (level) {
        case Level::dram:
            if (const auto bytes = dram_traffic(counters)) return Bytes{*bytes, dram};
            return Bytes{step.cost.bytes(), Origin::derived};
        case Level::l2:
            return counted(counters.l2_sm_sectors ? std::optional(*counters.l2_sm_sectors * sector_bytes)
                                                  : std::nullopt);
        case Level::l1: return counted(counters.l1_bytes);
    }
    return std::nullopt;
}

/// FLOPs executed less those that are needed, on the unit that `matrix` names: counted where they were, else the
/// padding and the masked work that the plan knows of. Only matrix products run on tensor cores; the rest computes
/// 16-bit data in fp32.
double extra_flops(const StepResult& step, bool matrix) {
    const Precision unit = matrix || step.precision == Precision::fp64 ? step.precision : Precision::fp32;
    const std::optional<double> executed = executed_flops(counters_of(step), unit);
    return executed && *executed > 0 ? *executed - step.needed_flops() : step.padding_flops;
}

/// How much longer a roof's work takes at the run's clock. DRAM has a clock of its own, and L2's is not read. A roof
/// was measured at the clock that its unit leaves the SMs at full load: a higher one that NVML reads makes it no faster
/// for sure, but perhaps.
Interval slowdown(const Demand& demand, const Interval& clock_mhz) {
    const bool on_chip = !demand.level || *demand.level == Level::l1;
    if (!on_chip || demand.roof.clock_mhz <= 0 || clock_mhz.low <= 0) return Interval::exactly(1);
    const Interval slower = quotient(Interval::exactly(demand.roof.clock_mhz), clock_mhz);
    return {std::max(1.0, slower.value), slower.low, std::max(1.0, slower.high)};
}

/// The clock at which this step ran, see step_clock_mhz.
Interval clock_of(const StepResult& step, const Interval& run_mhz) {
    if (run_mhz.value <= 0) return run_mhz;
    const double mhz = step_clock_mhz(step, run_mhz.value);
    return {mhz, std::min(mhz, run_mhz.low), std::max(mhz, run_mhz.high)};
}

/// The run's demand between the ends of the roof, the clock and the count.
Interval as_run(const Demand& demand, const Interval& clock_mhz) {
    const double work = demand.work + demand.extra_work;
    const double count = demand.origin == Origin::derived ? 0 : count_tolerance;
    const Roof& roof = demand.roof;
    const Interval per_s{roof.per_s, roof.low_per_s > 0 ? std::min(roof.low_per_s, roof.per_s) : roof.per_s,
                         std::max(roof.high_per_s, roof.per_s)};
    const Interval us = scaled(quotient({work, work * (1 - count), work * (1 + count)}, per_s), 1e6);
    const Interval slower = slowdown(demand, clock_mhz);
    return {us.value * slower.value, us.low * slower.low, us.high * slower.high};
}

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

bool Demand::is_memory() const { return level || unit == shared_memory; }

std::string_view Demand::name() const {
    if (level) return kbench::name(*level);
    return unit.empty() ? std::string_view(roof.ceiling) : unit;
}

Interval run_clock(const Point& point) {
    const double mean = point.conditions.sm_clock_mhz.value.value_or(0);
    Interval clock = Interval::exactly(mean);
    for (const ConditionBlock& block : point.conditions.blocks) {
        const double mhz = block.sm_clock_mhz.value_or(0);
        if (mean <= 0 || mhz <= 0) continue;
        clock.low = std::min(clock.low, mhz);
        clock.high = std::max(clock.high, mhz);
    }
    return clock;
}

Origin dram_origin(const Point& point) {
    const auto metric = std::ranges::find(point.counters.metrics, "dram_read_bytes", &CountedMetric::name);
    return metric != point.counters.metrics.end() ? metric->origin : Origin::measured;
}

std::vector<Demand> demands_of(const StepResult& step, const Roofs& roofs, Origin dram, const Interval& run_mhz) {
    std::vector<Demand> demands;
    const Interval clock_mhz = clock_of(step, run_mhz);
    const auto add = [&](const std::optional<Roof>& roof, std::optional<Level> level, double work, double extra,
                         Origin origin) {
        if (!roof || roof->per_s <= 0) return;
        Demand& demand =
            demands.emplace_back(Demand{*roof, level, {}, work, extra, work / roof->per_s * 1e6, {}, origin});
        demand.run_us = as_run(demand, clock_mhz);
    };
    if (step.needed_flops() > 0)
        add(unit_roof(step, roofs), {}, step.needed_flops(), extra_flops(step, is_matrix_product(step)),
            Origin::derived);
    for (const Level level : levels)
        if (const std::optional<Bytes> bytes = bytes_at(step, level, dram))
            if (bytes->bytes > 0 || bytes->origin == Origin::measured)
                add(roofs.bandwidth(level), level, bytes->bytes, 0, bytes->origin);
    sort_longest_first(demands);
    return demands;
}

std::vector<Demand> unit_demands_of(const StepResult& step, const Roofs& roofs, const Interval& run_mhz) {
    std::vector<Demand> demands;
    const Counters counters = counters_of(step);
    for (const UnitWork& unit : unit_work) {
        const std::optional<double> counted = counters.*unit.counter;
        const std::optional<Roof> roof = roofs.roof(unit.ceiling);
        if (!counted || !roof || roof->per_s <= 0) continue;
        const double work = *counted * unit.of_one;
        Demand& demand =
            demands.emplace_back(Demand{*roof, {}, unit.unit, work, 0, work / roof->per_s * 1e6, {}, Origin::measured});
        demand.run_us = as_run(demand, clock_of(step, run_mhz));
    }
    sort_longest_first(demands);
    return demands;
}

std::vector<Demand> all_demands(const std::vector<Demand>& demands, const std::vector<Demand>& unit_demands) {
    std::vector<Demand> all = demands;
    all.insert(all.end(), unit_demands.begin(), unit_demands.end());
    sort_longest_first(all);
    return all;
}

bool are_tied(const std::vector<Demand>& demands) {
    return demands.size() > 1 && demands[1].run_us.value > 0 && demands[1].run_us.high >= demands[0].run_us.low;
}

void DemandSums::add(const StepResult& step, const std::vector<Demand>& demands,
                     const std::vector<Demand>& unit_demands, double time_us, const std::optional<double>& active_us) {
    const std::vector<Demand> all = all_demands(demands, unit_demands);
    for (const Demand& demand : all) add_to(by_roof, demand.name(), false, demand.run_us);
    if (active_us)
        for (const BusyUnit& unit : busy_units(step)) {
            const double us = unit.share * (unit.of_active ? *active_us : time_us);
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
    if (!demands.empty()) useful_us += demands.front().us;
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
