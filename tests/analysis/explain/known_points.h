// Points whose bound is known by construction, on a machine of round roofs: a share of a roof is a share of the time.
// Every figure of a step is given as the share of its time that it should be.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/interventions.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/suspects.h"
#include "analysis/explain/time_breakdown.h"
#include "analysis/explain/verdict.h"
#include "analysis/facts/point_facts.h"
#include "analysis/machine/ceilings.h"
#include "kbench/result.h"

namespace kbench::known {

// Per microsecond: 1 TB/s is 10^6 bytes, 10 TFLOP/s are 10^7 FLOPs.
inline constexpr double dram_bytes = 1e6, l2_bytes = 4e6, l1_bytes = 1e7, plain_flops = 1e7, tensor_flops = 1e8,
                        shared_passes = 1e7 / 128, special_inst = 100, load_store_inst = 400;
/// The clock of the roofs and of the run: a microsecond has 1000 cycles.
inline constexpr double clock_mhz = 1000;
inline constexpr double graph_node_us = 1;
/// The number of schedulers in an SM.
inline constexpr double issues_per_cycle = 4;

Ceiling ceiling(std::string name, double value, double at_mhz = clock_mhz);
CeilingRun gpu_roofs();
CeilingRun cpu_roofs();
/// The same roofs without the ceiling of that name.
CeilingRun without(CeilingRun run, std::string_view name);
/// One step, by the shares of its time that its work takes.
struct Step {
    std::string layer = "h.0.ln_1", op = "layernorm";
    Precision precision = Precision::fp32;
    double us = 100;     ///< all its kernels, without gaps
    double gap_us = 0;   ///< before each kernel
    int kernels = 1;     ///< 0: not recorded; the time is then the step run's
    double compute = 0;  ///< FLOPs over the roof of the unit at the roof's clock
    double dram = 0, l2 = 0, l1 = 0;
    double unfused = 0;  ///< the cost model's bytes over DRAM's bandwidth
    double active = 1;   ///< SMs with a warp
    double issue = 0;    ///< issue slots of the whole time
    std::optional<double> occupancy_pct = 50;
    bool counted = true;
    std::map<std::string, double> units = {};        ///< by counter, percent of the active cycles; all others are idle
    double shared = 0, special = 0, load_store = 0;  ///< what units did, over their roofs; not counted where all are 0
    bool units_counted = true;
    std::int64_t time_steps = 1;
    double executed = 0;  ///< FLOPs beyond the model's, counted by tensor cores, over the roof; see `compute`
};

double unit_flops(const Step& step);
StepResult make_step(const Step& known, int index);
/// A result of one point whose end-to-end time is the sum of its steps and gaps, `beyond_us` more.
Result result_of(const std::vector<Step>& steps, CeilingRun roofs = gpu_roofs(), double beyond_us = 0,
                 double run_clock_mhz = clock_mhz);
/// Time against size of the step at that position and of those that are like it: what it has whatever its size, and
/// what grows with it, at the clock of the roofs.
SizeScaling make_sizes(std::vector<int> steps, double fixed_us, double slope_us, double at_mhz = clock_mhz);
/// The point on 100, 75 and 50 SMs, each step's time as long as it is times (100 / SMs) to that power.
void add_sm_scaling(Point& point, double elasticity);
/// The point while a thief takes 30 % of DRAM's, and then of L2's, bandwidth: each step's time by these elasticities.
void add_theft(Point& point, double dram, double l2);
/// What an explanation rests on, whatever of it is impossible or lacks ground.
struct Accounts {
    PointFacts facts;
    std::vector<StepRoofTimes> roof_times;
    std::vector<UnitActivity> units;
    CycleAccounts cycles;
    TimeBreakdown breakdown;
    Causes causes;
    Interventions interventions;
    Verdicts verdicts;
    Suspects suspects;
};
Accounts accounts_of(const Result& result);
TimeBreakdown breakdown_of(const Result& result);
Verdicts judged(const Result& result);
/// One letter each for bandwidth, compute, latency, launch, occupancy: C confirmed, R rejected, ? not identifiable.
std::string letters(const std::vector<Hypothesis>& hypotheses);
inline constexpr Bound bandwidth = Bound::bandwidth, compute = Bound::compute, latency = Bound::latency,
                       launch = Bound::launch, occupancy = Bound::occupancy, unknown = Bound::not_identifiable;

}  // namespace kbench::known
