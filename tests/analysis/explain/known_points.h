// Points whose bound is known by construction, on a machine of round roofs: a share of a roof is a share of the time.
// Every figure of a step is given as the share of its time that it should be.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/verdict.h"
#include "analysis/machine/ceilings.h"
#include "kbench/result.h"

namespace kbench::known {

// Per microsecond: 1 TB/s is 10^6 bytes, 10 TFLOP/s are 10^7 FLOPs.
inline constexpr double dram_bytes = 1e6, l2_bytes = 4e6, l1_bytes = 1e7, plain_flops = 1e7, tensor_flops = 1e8;
/// At which roofs were measured and the run ran: a microsecond has 1000 cycles.
inline constexpr double clock_mhz = 1000;
inline constexpr double graph_node_us = 1;
/// An SM's schedulers.
inline constexpr double issues_per_cycle = 4;

inline Ceiling ceiling(std::string name, double value, double at_mhz = clock_mhz) {
    return {std::move(name), Quantity::measured(value), value, value, at_mhz, Quantity::unavailable("made up")};
}

inline CeilingRun gpu_roofs() {
    CeilingRun run;
    run.device = "a GPU of round roofs";
    run.ceilings = {ceiling("dram_read", 1000),  ceiling("dram_copy", 900),     ceiling("l2_read", 4000),
                    ceiling("l1_read", 10000),   ceiling("fp32_plain", 10),     ceiling("fp64_plain", 5),
                    ceiling("fp16_tensor", 100), ceiling("graph_node", 1, 0.0), ceiling("launch", 2, 0.0)};
    return run;
}

inline CeilingRun cpu_roofs() {
    CeilingRun run;
    run.device = "a CPU of round roofs";
    run.ceilings = {ceiling("cpu_dram_read", 1000), ceiling("cpu_dram_triad", 900), ceiling("avx2_fp32", 5),
                    ceiling("avx512_fp32", 10), ceiling("avx512_fp32_one_core", 20)};
    return run;
}

/// Without the ceiling of that name.
inline CeilingRun without(CeilingRun run, std::string_view name) {
    std::erase_if(run.ceilings, [&](const Ceiling& ceiling) { return ceiling.name == name; });
    return run;
}

/// One step: shares of its time that its kernels take.
struct Step {
    std::string layer = "h.0.ln_1", op = "layernorm";
    Precision precision = Precision::fp32;
    double us = 100;     ///< of all its kernels, without gaps
    double gap_us = 0;   ///< before each kernel
    int kernels = 1;     ///< 0: not recorded; the time is then the step run's
    double compute = 0;  ///< FLOPs over the roof of the unit at the roof's clock
    double dram = 0, l2 = 0, l1 = 0;
    double compulsory = 0;  ///< the cost model's bytes over DRAM's bandwidth
    double active = 1;      ///< SMs with a warp
    double issue = 0;       ///< issue slots of the whole time
    std::optional<double> occupancy_pct = 50;
    bool counted = true;
    double executed = 0;  ///< FLOPs beyond the model's, counted by tensor cores, over the roof; see `compute`
};

inline double unit_flops(const Step& step) { return step.op == "gemm" ? tensor_flops : plain_flops; }

inline StepResult make_step(const Step& known, int index) {
    StepResult step;
    step.index = index;
    step.layer = known.layer;
    step.op = known.op;
    step.precision = known.op == "gemm" ? Precision::fp16 : known.precision;
    step.cost.flops = known.compute * known.us * unit_flops(known);
    step.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = known.compulsory * known.us * dram_bytes;
    if (known.kernels == 0 && known.us > 0) {
        step.time_us = Summary{};
        step.time_us->mean = known.us;
        step.time_us->median = 0.9 * known.us;  // of a step that is slow in some runs; medians do not add up
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
    if (known.occupancy_pct) step.counters["achieved_occupancy"] = *known.occupancy_pct;
    if (known.executed > 0)
        step.counters["tensor_fp16_ops"] = step.cost.flops + known.executed * known.us * tensor_flops;
    return step;
}

/// A result of one point whose end-to-end time is the sum of its steps and gaps, `beyond_us` more.
inline Result result_of(const std::vector<Step>& steps, CeilingRun roofs = gpu_roofs(), double beyond_us = 0,
                        double run_clock_mhz = clock_mhz) {
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
    point.end_to_end->latency.summary_ms.median = end_to_end_us * 1e-3;
    if (run_clock_mhz > 0) point.conditions.sm_clock_mhz = Quantity::measured(run_clock_mhz);
    return result;
}

inline Verdicts judged(const Result& result) {
    const Roofs roofs(result);
    return judge(make_ledger(result.points.front(), roofs), roofs);
}

/// Of bandwidth, compute, latency, launch, occupancy: C confirmed, R rejected, ? not identifiable.
inline std::string letters(const std::vector<Hypothesis>& hypotheses) {
    std::string text;
    for (const Hypothesis& hypothesis : hypotheses)
        text += hypothesis.finding == Finding::confirmed ? 'C' : hypothesis.finding == Finding::rejected ? 'R' : '?';
    return text;
}

inline constexpr Bound bandwidth = Bound::bandwidth, compute = Bound::compute, latency = Bound::latency,
                       launch = Bound::launch, occupancy = Bound::occupancy, unknown = Bound::not_identifiable;

}  // namespace kbench::known
