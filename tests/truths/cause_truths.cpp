// Truths of the breakdown by cause: kernels whose parts take known cycles, so that the milliseconds of every line are
// known. The parts are long compared with a launch, which is in the fixed time besides what was planted.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kbench/error.h"
#include "kernels/probe/latency.h"
#include "kernels/probe/wgmma.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/cause_figures.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"

namespace kbench {
namespace {

using cuda::known::Stages;

/// The clock of the graph is read, as cycles are planted; SASS instructions tell what was executed.
KnownBudget cause_budget(const Planter& at, std::vector<std::string> extra_sets = {"sass"}) {
    KnownBudget budget = at.settled_budget(std::move(extra_sets));
    budget.graph_clock = true;
    return budget;
}

int times_factor(std::int64_t count, double factor) { return static_cast<int>(static_cast<double>(count) * factor); }

/// `blocks` blocks of stages, which claim `useful` of their FLOPs. Iterations grow.
KnownStep stages_step(const Planter& at, std::string name, const Stages& stages, int blocks, double useful = 1) {
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::known::fma_block_threads * 4);
    const auto at_size = [=, stream = at.stream()](double factor) {
        Stages sized = stages;
        sized.iterations = times_factor(stages.iterations, factor);
        cuda::known::stages(sized, blocks, as<float>(out), stream);
    };
    KnownStep step{std::move(name), useful * cuda::known::fma_block_flops(blocks, stages.iterations), 0,
                   [=] { at_size(1); }};
    step.at_size = at_size;
    return step;
}

/// What grows is at its roof, and behind it every SM only watches its clock: an epilogue that nothing hides.
Planted known_epilogue(const Planter& at, const Drawn& drawn) {
    const Stages stages{.iterations = static_cast<int>(drawn["iterations"]),
                        .epilogue_cycles = drawn["kilocycles"] * 1000};
    Planted planted;
    planted.what = fmt::format("{:.0f} cycles of FFMA, then {} on the clock", cuda::known::fma_cycles(stages),
                               stages.epilogue_cycles);
    planted.steps = {stages_step(at, "epilogue", stages, at.multiprocessors())};
    planted.figures = cause_figures(
        {{"fixed time, cycles", {Cause::fixed}, static_cast<double>(stages.epilogue_cycles)},
         {"useful work and clock, cycles", {Cause::useful, Cause::clock}, cuda::known::fma_cycles(stages)}});
    planted.budget = cause_budget(at);
    return planted;
}

constexpr int wasted_slots[] = {64, 96};

/// The wait stands before the loop, and in the loop shifts take issue slots: that is the main loop's, below its roof.
Planted known_fill(const Planter& at, const Drawn& drawn) {
    const Stages stages{.fill_cycles = drawn["kilocycles"] * 1000,
                        .iterations = static_cast<int>(drawn["iterations"]),
                        .wasted_slots = wasted_slots[drawn["waste"]]};
    Planted planted;
    planted.what = fmt::format("{} cycles on the clock, then {:.0f} of FFMA and {:.0f} of shifts", stages.fill_cycles,
                               cuda::known::fma_cycles(stages), cuda::known::wasted_cycles(stages));
    planted.steps = {stages_step(at, "fill", stages, at.multiprocessors())};
    planted.figures = cause_figures(
        {{"fixed time, cycles", {Cause::fixed}, static_cast<double>(stages.fill_cycles)},
         {"main loop, cycles", {Cause::main_loop}, cuda::known::wasted_cycles(stages)},
         {"useful work and clock, cycles", {Cause::useful, Cause::clock}, cuda::known::fma_cycles(stages)}});
    planted.budget = cause_budget(at);
    return planted;
}

/// A whole wave of blocks and a part of one: the SMs that have none of the second idle for half of the time.
Planted part_of_a_wave(const Planter& at, const Drawn& drawn) {
    const auto second = static_cast<int>(at.multiprocessors() * drawn["percent"] / 100);
    const Stages stages{.iterations = static_cast<int>(drawn["iterations"])};
    const double idle = 1 - static_cast<double>(second) / at.multiprocessors();
    const double wave = cuda::known::fma_cycles(stages);
    Planted planted;
    planted.what = fmt::format("a wave of {} blocks and one of {}", at.multiprocessors(), second);
    planted.steps = {stages_step(at, "waves", stages, at.multiprocessors() + second)};
    planted.figures =
        cause_figures({{"uneven waves, cycles", {Cause::uneven}, wave * idle},
                       {"useful work and clock, cycles", {Cause::useful, Cause::clock}, wave * (2 - idle)}});
    planted.budget = cause_budget(at);
    return planted;
}

/// It claims a part of the FLOPs that it executes; the others are not what was asked for.
Planted beyond_useful(const Planter& at, const Drawn& drawn) {
    const Stages stages{.iterations = static_cast<int>(drawn["iterations"])};
    const double useful = static_cast<double>(drawn["percent"]) / 100, cycles = cuda::known::fma_cycles(stages);
    Planted planted;
    planted.what = fmt::format("FFMA that claims {} % of its FLOPs", drawn["percent"]);
    planted.steps = {stages_step(at, "beyond", stages, at.multiprocessors(), useful)};
    planted.figures =
        cause_figures({{"extra work, cycles", {Cause::extra}, cycles * (1 - useful)},
                       {"useful work and clock, cycles", {Cause::useful, Cause::clock}, cycles * useful}});
    planted.budget = cause_budget(at);
    return planted;
}

/// Time steps of known cycles, and between them a barrier of the whole grid. A barrier takes what it takes alone.
Planted dependent_steps(const Planter& at, const Drawn& drawn) {
    constexpr int barriers_alone = 2000;
    const int blocks = at.multiprocessors(), time_steps = static_cast<int>(drawn["time steps"]);
    const std::int64_t cycles = drawn["cycles"];
    const Memory state = at.allocate(sizeof(cuda::probe::BarrierState));
    const auto alone = [=, stream = at.stream()] {
        cuda::probe::grid_barriers(blocks, barriers_alone, as<cuda::probe::BarrierState>(state), nullptr, stream);
    };
    const double barrier_cycles = at.ms(alone) * 1e3 / barriers_alone * at.clock_mhz(alone);
    const Memory arrivals = at.allocate(2 * sizeof(std::uint32_t));
    const auto at_size = [=, stream = at.stream()](double factor) {
        cuda::known::dependent_spins(cycles, times_factor(time_steps, factor), blocks, as<std::uint32_t>(arrivals),
                                     stream);
    };
    Planted planted;
    planted.what =
        fmt::format("{} time steps of {} cycles with barriers of {:.0f}", time_steps, cycles, barrier_cycles);
    KnownStep& step = planted.steps.emplace_back(KnownStep{"time.steps", 0, 0, [=] { at_size(1); }});
    step.at_size = at_size;
    step.axis = "time_steps";
    step.time_steps = time_steps;
    planted.figures =
        cause_figures({{"dependency, cycles", {Cause::dependency}, barrier_cycles * time_steps},
                       {"main loop, cycles", {Cause::main_loop}, static_cast<double>(cycles) * time_steps}});
    planted.budget = cause_budget(at, {});
    return planted;
}

/// Multiplications and additions by tensor cores of an SM in a cycle, dense: 512 FMAs of fp16 in each of four
/// (NVIDIA H100 whitepaper).
constexpr double wgmma_flops_a_cycle = 2 * 4 * 512;

/// Tensor cores at full pace draw as much power as the GPU may take. Their cycles are known, so that the time beyond
/// these cycles at the highest clock is the lower clock's.
Planted power_hungry(const Planter& at, const Drawn& drawn) {
    const GpuInfo gpu = at.gpu();
    if (gpu.compute_capability_major != 9 || gpu.compute_capability_minor != 0)
        throw Unsupported("wgmma is compute capability 9.0's");
    constexpr int warpgroups = 2;
    const int blocks = at.multiprocessors();
    const std::int64_t iterations = drawn["iterations"];
    const Memory out = at.allocate(std::int64_t{blocks} * warpgroups * 128 * 4);
    const double flops =
        cuda::probe::wgmma_flops(Precision::fp16, warpgroups, blocks) * static_cast<double>(iterations);
    const double cycles = flops / blocks / wgmma_flops_a_cycle;
    const auto at_size = [=, stream = at.stream()](double factor) {
        cuda::probe::wgmma_chains(Precision::fp16, warpgroups, blocks, times_factor(iterations, factor), as<float>(out),
                                  nullptr, stream);
    };
    Planted planted;
    planted.what = fmt::format("{:.0f} cycles of wgmma", cycles);
    KnownStep& step =
        planted.steps.emplace_back(KnownStep{"hungry", flops, 0, [=] { at_size(1); }, Precision::fp16, true});
    step.at_size = at_size;
    planted.figures = cause_figures({{"useful work and clock, cycles", {Cause::useful, Cause::clock}, cycles}});
    planted.figures.push_back({"clock, less time beyond the cycles at the highest clock, of the time", 0,
                               [=](const KnownResult& known) -> std::optional<double> {
                                   const double highest_mhz = known.explained.facts.roofs.highest_clock_mhz();
                                   if (known.explained.causes.steps.empty() || highest_mhz <= 0) return std::nullopt;
                                   const StepCauses& causes = known.explained.causes.steps.front();
                                   const double time_us = known.explained.facts.steps.front().time_us;
                                   const double slower_us = std::max(0.0, time_us - cycles / highest_mhz);
                                   return (causes.lines[Cause::clock].value - slower_us) / time_us;
                               },
                               Tolerance::of_whole});
    planted.budget = cause_budget(at, {"tensor"});
    return planted;
}

}  // namespace

std::vector<Truth> cause_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"known-epilogue", cuda, {{"iterations", 150, 400}, {"kilocycles", 100, 250}}, known_epilogue},
        {"known-fill",
         cuda,
         {{"iterations", 150, 400}, {"kilocycles", 100, 250}, {"waste", 0, std::size(wasted_slots) - 1}},
         known_fill},
        {"part-of-a-wave", cuda, {{"percent", 30, 70}, {"iterations", 200, 500}}, part_of_a_wave},
        {"beyond-useful", cuda, {{"percent", 40, 70}, {"iterations", 300, 700}}, beyond_useful},
        {"dependent-steps", cuda, {{"time steps", 150, 300}, {"cycles", 2000, 5000}}, dependent_steps},
        {"power-hungry", cuda, {{"iterations", 400, 900}}, power_hungry},
    };
}

}  // namespace kbench
