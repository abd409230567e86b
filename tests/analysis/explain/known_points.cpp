// Builds points from the shares of roofs that they are to have.
#include "tests/analysis/explain/known_points.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "analysis/explain/cycles.h"
#include "analysis/explain/elasticity.h"
#include "analysis/explain/judge.h"
#include "analysis/explain/roof_times.h"
#include "analysis/explain/serial_chain.h"
#include "analysis/explain/theft.h"
#include "analysis/explain/units.h"

namespace kbench::known {

Ceiling ceiling(std::string name, double value, double at_mhz) {
    return {std::move(name), Quantity::measured(value), value, value, at_mhz, Quantity::unavailable("made up")};
}

CeilingRun gpu_roofs() {
    CeilingRun run;
    run.device = "a GPU of round roofs";
    run.ceilings = {ceiling("dram_read", 1000),  ceiling("dram_copy", 900),     ceiling("l2_read", 4000),
                    ceiling("l1_read", 10000),   ceiling("fp32_plain", 10),     ceiling("fp64_plain", 5),
                    ceiling("fp16_tensor", 100), ceiling("shared_read", 10000), ceiling("special", 0.1),
                    ceiling("load_store", 0.4),  ceiling("graph_node", 1, 0.0), ceiling("launch", 2, 0.0)};
    return run;
}

CeilingRun cpu_roofs() {
    CeilingRun run;
    run.device = "a CPU of round roofs";
    run.ceilings = {ceiling("cpu_dram_read", 1000), ceiling("cpu_dram_triad", 900), ceiling("avx2_fp32", 5),
                    ceiling("avx512_fp32", 10), ceiling("avx512_fp32_one_core", 20)};
    return run;
}

CeilingRun without(CeilingRun run, std::string_view name) {
    std::erase_if(run.ceilings, [&](const Ceiling& ceiling) { return ceiling.name == name; });
    return run;
}

double unit_flops(const Step& step) { return step.op == "gemm" ? tensor_flops : plain_flops; }

StepResult make_step(const Step& known, int index) {
    StepResult step;
    step.index = index;
    step.layer = known.layer;
    step.op = known.op;
    step.precision = known.op == "gemm" ? Precision::fp16 : known.precision;
    step.cost.flops = known.compute * known.us * unit_flops(known);
    step.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = known.unfused * known.us * dram_bytes;
    if (known.time_steps > 1) step.time_steps = known.time_steps;
    if (known.kernels == 0 && known.us > 0) {
        step.time_us = Summary{};
        step.time_us->mean = known.us;
        step.time_us->median = 0.9 * known.us;  // the step is slow in some runs; medians do not add up
    }
    for (int k = 0; k < known.kernels; ++k) {
        KernelResult& kernel = step.kernels.emplace_back();
        kernel.time_us = known.us / known.kernels;
        kernel.gap_us = known.gap_us;
    }
    if (!known.counted) return step;
    step.counters = {{"dram_read_bytes", known.dram * known.us * dram_bytes},
                     {"dram_write_bytes", 0},
                     {"l2_sm_sectors", known.l2 * known.us * l2_bytes / 32},
                     {"l1_bytes", known.l1 * known.us * l1_bytes},
                     {"sm_cycles_active", known.active * known.us * clock_mhz},
                     {"ipc", known.active > 0 ? known.issue / known.active * issues_per_cycle : 0}};
    if (known.units_counted)
        for (const char* unit : {"tensor_pipe_active", "pipe_alu", "pipe_fma", "pipe_fp64", "pipe_xu", "pipe_lsu",
                                 "pipe_shared_memory", "l2_lookups"})
            step.counters[unit] = 0;
    for (const auto& [unit, pct] : known.units) step.counters[unit] = pct;
    if (known.shared + known.special + known.load_store > 0) {
        step.counters["shared_wavefronts"] = known.shared * known.us * shared_passes;
        step.counters["xu_inst"] = known.special * known.us * special_inst;
        step.counters["lsu_inst"] = known.load_store * known.us * load_store_inst;
    }
    if (known.occupancy_pct) step.counters["achieved_occupancy"] = *known.occupancy_pct;
    if (known.executed > 0)
        step.counters["tensor_fp16_ops"] = step.cost.flops + known.executed * known.us * tensor_flops;
    return step;
}

Result result_of(const std::vector<Step>& steps, CeilingRun roofs, double beyond_us, double run_clock_mhz) {
    Result result;
    result.ceilings = std::move(roofs);
    if (result.ceilings.ceilings.empty()) result.ceilings.unavailable = "nobody measured them";
    Point& point = result.points.emplace_back();
    point.set("model", "made up");
    point.set("backend", result.ceilings.device.find("CPU") == std::string::npos ? "cuda" : "cpu");
    point.set("precision", Precision::fp32);
    point.status = PointStatus::done;
    double end_to_end_us = beyond_us;
    for (const Step& step : steps) {
        point.steps.push_back(make_step(step, static_cast<int>(point.steps.size())));
        end_to_end_us += step.us + step.gap_us * step.kernels;
    }
    point.end_to_end.emplace();
    point.end_to_end->latency.summary_ms.n = 20;
    point.end_to_end->latency.summary_ms.median = end_to_end_us * 1e-3;
    if (run_clock_mhz > 0) point.conditions.sm_clock_mhz = Quantity::measured(run_clock_mhz);
    return result;
}

SizeScaling make_sizes(std::vector<int> steps, double fixed_us, double slope_us, double at_mhz) {
    SizeScaling scaling{std::move(steps), "k", "", {}};
    for (const double factor : {1.0, 2.0, 4.0}) {
        SizeTime& time = scaling.times.emplace_back();
        time.factor = factor;
        time.work_flops = 1e9 * factor;
        time.implementation = "made up";
        time.us.n = 20;
        time.us.median = time.us.ci_low = time.us.ci_high = (fixed_us + factor * slope_us) * clock_mhz / at_mhz;
        time.sm_clock_mhz = Quantity::measured(at_mhz);
    }
    return scaling;
}

void add_sm_scaling(Point& point, double elasticity) {
    SmScaling& scaling = point.sm_scaling.emplace();
    for (const int count : {100, 75, 50}) {
        SmCountRun& run = scaling.runs.emplace_back();
        run.multiprocessors = count;
        run.sm_clock_mhz = Quantity::measured(clock_mhz);
        for (const StepResult& step : point.steps) {
            const double us = *step.device_us() * std::pow(100.0 / count, elasticity);
            run.step_us.push_back(us);
            run.step_low_us.push_back(us);
            run.step_high_us.push_back(us);
        }
    }
}

void add_theft(Point& point, double dram, double l2) {
    constexpr double share = 0.3, of_l2 = share / 4;  // DRAM's bytes pass through L2, of four times the bandwidth
    BandwidthTheft& theft = point.theft.emplace();
    for (const auto& [takes, taken, elasticity, through] : {std::tuple("nothing", 0.0, 0.0, 0.0),
                                                            {"compute", 0.0, 0.0, 0.0},
                                                            {"dram", share, dram, l2},
                                                            {"l2", share, l2, 0.0},
                                                            {"compute", 0.0, 0.0, 0.0}}) {
        ThiefRun& run = theft.runs.emplace_back();
        run.takes = takes;
        run.multiprocessors = 80;
        run.share = taken;
        run.launches = 20;
        run.sm_clock_mhz = Quantity::measured(clock_mhz);
        for (const StepResult& step : point.steps) {
            const double us = *step.device_us() * std::pow(1 - taken, -elasticity) * std::pow(1 - of_l2, -through);
            run.step_us.push_back(us);
            run.step_low_us.push_back(us);
            run.step_high_us.push_back(us);
            run.latency_ms += us * 1e-3;
        }
    }
}

Accounts accounts_of(const Result& result) {
    Accounts accounts;
    const Roofs roofs(result);
    accounts.facts = make_facts(result.points.front(), roofs);
    std::vector<std::vector<std::string>> told;
    if (result.points.front().end_to_end)
        for (const StepFacts& step : accounts.facts.steps) {
            accounts.roof_times.push_back(roof_times_of_step(step, roofs));
            accounts.units.push_back(unit_activity(step));
            told.push_back(serial_chain_evidence(step, accounts.roof_times.back(), accounts.units.back(), roofs));
        }
    accounts.cycles = account_cycles(accounts.facts);
    accounts.breakdown = break_down(accounts.facts, accounts.roof_times, accounts.units, accounts.cycles);
    accounts.causes = find_causes(accounts.facts, accounts.roof_times, accounts.cycles);
    accounts.interventions =
        interventions_of(accounts.facts, sm_elasticity(accounts.facts), bandwidth_elasticity(accounts.facts));
    const Grounds grounds{accounts.facts, accounts.roof_times, accounts.units,         accounts.cycles,
                          told,           &accounts.causes,    &accounts.interventions};
    accounts.verdicts = judge(grounds);
    accounts.suspects = find_suspects(grounds, is_at_power_limit(result.points.front().conditions));
    return accounts;
}

TimeBreakdown breakdown_of(const Result& result) { return accounts_of(result).breakdown; }

Verdicts judged(const Result& result) { return accounts_of(result).verdicts; }

std::string letters(const std::vector<Hypothesis>& hypotheses) {
    std::string text;
    for (const Hypothesis& hypothesis : hypotheses)
        text += hypothesis.finding == Finding::confirmed ? 'C' : hypothesis.finding == Finding::rejected ? 'R' : '?';
    return text;
}

}  // namespace kbench::known
