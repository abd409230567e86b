#include "analysis/explain/roof_times.h"

#include <algorithm>

#include "analysis/facts/executed_flops.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

constexpr double sector_bytes = 32, wavefront_bytes = 128;

/// A unit of the SM that has a roof but no place in a cost model.
struct UnitWork {
    std::string_view unit, ceiling;
    CounterOf counter;
    double of_one;  ///< how much of what the ceiling counts
};
constexpr UnitWork unit_work[] = {{unit::shared_memory, "shared_read", &Counters::shared_wavefronts, wavefront_bytes},
                                  {unit::special_functions, "special", &Counters::xu_inst, 1},
                                  {unit::load_store, "load_store", &Counters::lsu_inst, 1}};

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

std::optional<Roof> unit_roof(const StepFacts& facts, const Roofs& roofs, bool fastest) {
    const StepResult& step = *facts.step;
    if (!is_matrix_product(step)) return roofs.plain(step.precision);
    return !fastest && is_by_mma_sync(facts.counters) ? roofs.matrix_by_mma_sync(step.precision)
                                                      : roofs.matrix(step.precision);
}

struct Bytes {
    double bytes;
    Origin origin;
};

std::optional<Bytes> bytes_at(const StepFacts& step, Level level) {
    const auto counted = [](std::optional<double> value) {
        return value ? std::optional(Bytes{*value, Origin::measured}) : std::nullopt;
    };
    const Counters& counters = step.counters;
    switch (level) {
        case Level::dram:
            if (const auto bytes = dram_traffic(counters)) return Bytes{*bytes, step.dram_origin};
            return Bytes{step.step->cost.bytes(), Origin::derived};
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
double extra_flops(const StepFacts& facts, bool matrix) {
    const StepResult& step = *facts.step;
    const Precision unit = matrix || step.precision == Precision::fp64 ? step.precision : Precision::fp32;
    const std::optional<double> executed = executed_flops(facts.counters, unit);
    return executed && *executed > 0 ? *executed - step.needed_flops() : step.padding_flops;
}

/// How much longer a roof's work takes at the run's clock. DRAM has a clock of its own, and L2's is not read. A roof
/// was measured at the clock that its unit leaves the SMs at full load: a higher one that NVML reads makes it no faster
/// for sure, but perhaps.
Interval slowdown(const RoofTime& roof_time, const Interval& clock_mhz) {
    const bool on_chip = !roof_time.level || *roof_time.level == Level::l1;
    if (!on_chip || roof_time.roof.clock_mhz <= 0 || clock_mhz.low <= 0) return Interval::exactly(1);
    const Interval slower = quotient(Interval::exactly(roof_time.roof.clock_mhz), clock_mhz);
    return {std::max(1.0, slower.value), slower.low, std::max(1.0, slower.high)};
}

/// The roof time of the run between the ends of the roof, the clock and the count.
Interval as_run(const RoofTime& roof_time, const Interval& clock_mhz) {
    const double work = roof_time.work + roof_time.extra_work;
    const double count = roof_time.origin == Origin::derived ? 0 : count_tolerance;
    const Roof& roof = roof_time.roof;
    const Interval per_s{roof.per_s, roof.low_per_s > 0 ? std::min(roof.low_per_s, roof.per_s) : roof.per_s,
                         std::max(roof.high_per_s, roof.per_s)};
    const Interval us = scaled(quotient({work, work * (1 - count), work * (1 + count)}, per_s), 1e6);
    const Interval slower = slowdown(roof_time, clock_mhz);
    return {us.value * slower.value, us.low * slower.low, us.high * slower.high};
}

/// Each level that has a roof, or could have been counted, has bytes.
bool is_memory_known(const StepFacts& step, const StepRoofTimes& roof_times, const Roofs& roofs) {
    return std::ranges::all_of(levels, [&](Level level) {
        const bool is_asked = level == Level::dram || roofs.bandwidth(level) || step.has_cycles();
        return !is_asked || roof_times.at(level) != nullptr;
    });
}

std::vector<RoofTime> roof_times_by(const StepFacts& facts, const Roofs& roofs, const Interval& clock_mhz,
                                    bool fastest) {
    const StepResult& step = *facts.step;
    std::vector<RoofTime> roof_times;
    const auto add = [&](const std::optional<Roof>& roof, std::optional<Level> level, double work, double extra,
                         Origin origin) {
        if (!roof || roof->per_s <= 0) return;
        RoofTime& roof_time =
            roof_times.emplace_back(RoofTime{*roof, level, {}, work, extra, work / roof->per_s * 1e6, {}, origin});
        roof_time.run_us = as_run(roof_time, clock_mhz);
    };
    if (step.needed_flops() > 0)
        add(unit_roof(facts, roofs, fastest), {}, step.needed_flops(), extra_flops(facts, is_matrix_product(step)),
            Origin::derived);
    for (const Level level : levels)
        if (const std::optional<Bytes> bytes = bytes_at(facts, level))
            if (bytes->bytes > 0 || bytes->origin == Origin::measured)
                add(roofs.bandwidth(level), level, bytes->bytes, 0, bytes->origin);
    sort_longest_first(roof_times);
    return roof_times;
}

}  // namespace

std::vector<RoofTime> roof_times_of(const StepFacts& facts, const Roofs& roofs, const Interval& clock_mhz) {
    return roof_times_by(facts, roofs, clock_mhz, false);
}

std::vector<RoofTime> roof_times_at_fastest(const StepFacts& facts, const Roofs& roofs, const Interval& clock_mhz) {
    return roof_times_by(facts, roofs, clock_mhz, true);
}

StepRoofTimes roof_times_of_step(const StepFacts& step, const Roofs& roofs) {
    StepRoofTimes roof_times;
    roof_times.work = roof_times_of(step, roofs, step.clock_mhz);
    for (const UnitWork& unit : unit_work) {
        const std::optional<double> counted = step.counters.*unit.counter;
        const std::optional<Roof> roof = roofs.roof(unit.ceiling);
        if (!counted || !roof || roof->per_s <= 0) continue;
        const double work = *counted * unit.of_one;
        RoofTime& roof_time = roof_times.units.emplace_back(
            RoofTime{*roof, {}, unit.unit, work, 0, work / roof->per_s * 1e6, {}, Origin::measured});
        roof_time.run_us = as_run(roof_time, step.clock_mhz);
    }
    sort_longest_first(roof_times.units);
    roof_times.compute_known = step.step->cost.flops <= 0 || roof_times.at({}) != nullptr;
    roof_times.memory_known = is_memory_known(step, roof_times, roofs);
    return roof_times;
}

}  // namespace kbench
