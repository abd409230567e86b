// Truths of SMs that have no warp, of launches and gaps, and of time that only a clock fills.
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/latency.h"
#include "kernels/spin.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"

namespace kbench {
namespace {

/// FFMA by `blocks` blocks; an SM holds one at a time, and all take the same time.
KnownStep fma_step(const Planter& at, std::string name, int blocks, std::int64_t iterations) {
    const auto count = static_cast<int>(iterations);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::known::fma_block_threads * 4);
    return {std::move(name), cuda::known::fma_block_flops(blocks, count), 0,
            [=, stream = at.stream()] { cuda::known::fma_blocks(blocks, count, as<float>(out), stream); }};
}

/// A block for some SMs and none for the others: these have no warp from beginning to end, and in the former each
/// scheduler issues an FFMA a cycle.
Planted part_of_the_sms(const Planter& at, const Drawn& drawn) {
    const auto blocks = static_cast<int>(at.multiprocessors() * drawn["percent"] / 100);
    const double busy = static_cast<double>(blocks) / at.multiprocessors();
    Planted planted;
    planted.what = fmt::format("FFMA on {} of {} SMs", blocks, at.multiprocessors());
    planted.steps = {fma_step(at, "some.sms", blocks, drawn["iterations"])};
    planted.right = {{Bound::occupancy, {}, "idle-sms"}};
    planted.figures = {share_of_time("no warp, of the time", 1 - busy, &CycleAccount::no_warp),
                       share_of_time("issuing, of the time", busy, &CycleAccount::issuing)};
    planted.budget = at.budget();
    return planted;
}

/// As before, with all SMs but one idle.
Planted one_block(const Planter& at, const Drawn& drawn) {
    Planted planted;
    planted.what = "FFMA by one block";
    planted.steps = {fma_step(at, "one.block", 1, drawn["iterations"])};
    planted.right = {{Bound::occupancy, {}, "idle-sms"}};
    planted.figures = {share_of_time("no warp, of the time", 1 - 1.0 / at.multiprocessors(), &CycleAccount::no_warp)};
    planted.budget = at.budget();
    return planted;
}

/// Two blocks one after the other on one SM, one on every other: these idle for the second half.
Planted wave_plus_one(const Planter& at, const Drawn& drawn) {
    Planted planted;
    planted.what = "a wave of blocks and one more";
    planted.steps = {fma_step(at, "wave.plus.one", at.multiprocessors() + 1, drawn["iterations"])};
    planted.right = {{Bound::occupancy, {}, "idle-sms"}};
    planted.figures = {
        {"no warp, of the time", 0.5 * (1 - 1.0 / at.multiprocessors()),
         [](const KnownResult& known) -> std::optional<double> { return known.explained.cycles.steps.front().no_warp; },
         Tolerance::of_whole}};
    planted.budget = at.budget();
    return planted;
}

/// Every SM watches its clock until so many cycles have passed: the time is theirs at the clock of the run. What binds
/// that is no roof, no unit and no lack of SMs; four warps that wait on the clock may be called few, or waiting.
Planted known_cycles(const Planter& at, const Drawn& drawn) {
    const std::int64_t cycles = drawn["kilocycles"] * 1000;
    Planted planted;
    planted.what = fmt::format("{} cycles on the clock", cycles);
    planted.steps = {{"spin", 0, 0, [=, multiprocessors = at.multiprocessors(), stream = at.stream()] {
                          cuda::spin(cycles, multiprocessors, stream);
                      }}};
    planted.right = {{Bound::occupancy, {}, "few-warps"}, {Bound::latency}, {Bound::not_identifiable}};
    planted.figures = {{"time x clock, cycles", static_cast<double>(cycles), [](const KnownResult& known) {
                            const auto clock_mhz = known.result->points.front().conditions.sm_clock_mhz.value;
                            const double time_us = known.explained.facts.steps.front().time_us;
                            return clock_mhz ? std::optional(time_us * *clock_mhz) : std::nullopt;
                        }}};
    planted.budget = at.budget();
    return planted;
}

/// For a part of its cycles a kernel issues an FFMA each, and for the rest it waits for one load after the other. Half
/// of the warps that fit are resident, more than few. In the second part 8 warps of a scheduler issue some 3
/// instructions a load, which takes hundreds of cycles: about 2 % more than planted, of the whole.
Planted two_phases(const Planter& at, const Drawn& drawn) {
    constexpr std::uint32_t nodes = 1u << 22;
    const double share = static_cast<double>(drawn["percent"]) / 100;
    const std::int64_t cycles = drawn["kilocycles"] * 1000, fma_cycles = cycles * drawn["percent"] / 100;
    const Memory chain = at.allocate(std::int64_t{nodes} * cuda::known::chase_stride_bytes);
    const Memory out = at.allocate(std::int64_t{at.multiprocessors()} * cuda::known::phase_warps * 4);
    cuda::known::make_chase(as<std::uint32_t>(chain), nodes, at.stream());
    Planted planted;
    planted.what = fmt::format("FFMA for {} % of the cycles, then dependent loads", drawn["percent"]);
    planted.steps = {{"phases", 0, 0, [=, stream = at.stream()] {
                          cuda::known::phases(fma_cycles, cycles, as<std::uint32_t>(chain), nodes, as<float>(out),
                                              stream);
                      }}};
    planted.right = {{Bound::latency, {}, "waiting"}};
    planted.figures = {share_of_time("issuing, of the time", share, &CycleAccount::issuing),
                       share_of_time("not issuing, of the time", 1 - share, &CycleAccount::not_issuing),
                       active_cycles(static_cast<double>(cycles))};
    planted.budget = at.budget();
    return planted;
}

struct HostWait {
    std::chrono::microseconds length;
};
void CUDART_CB wait_on_host(void* wait) {
    const auto end = std::chrono::steady_clock::now() + static_cast<const HostWait*>(wait)->length;
    while (std::chrono::steady_clock::now() < end) {
    }
}

/// Between two kernels the graph waits for a function on the host: the device has nothing to do for so long, and for
/// what it takes to call it, 60 to 610 us on virtual machines: the wait is long enough for that to be about 3 %. A gap
/// needs no counters; they would be of a range that waits, too.
Planted known_gap(const Planter& at, const Drawn& drawn) {
    const auto wait = std::make_shared<HostWait>(HostWait{std::chrono::microseconds(drawn["us"])});
    const KnownStep before = fma_step(at, "before", at.multiprocessors(), 1000),
                    behind = fma_step(at, "behind", at.multiprocessors(), 1000);
    Planted planted;
    planted.what = fmt::format("{} us on the host between two kernels", drawn["us"]);
    planted.steps = {before, behind};
    planted.steps.back().enqueue = [enqueue = behind.enqueue, wait, stream = at.stream()] {
        KBENCH_CUDA(cudaLaunchHostFunc(stream, wait_on_host, wait.get()));
        enqueue();
    };
    planted.judged = 1;
    planted.right = {{Bound::launch, {}, "gap"}};
    planted.figures = {
        {"gap, us", static_cast<double>(drawn["us"]),
         [](const KnownResult& known) -> std::optional<double> { return known.step(1).kernels.at(0).gap_us; }},
        {"gaps of the model, us", static_cast<double>(drawn["us"]),
         [](const KnownResult& known) -> std::optional<double> {
             const Lines& total = known.explained.breakdown.total;
             return total.gaps_us();
         }},
        {"gaps of the breakdown by cause, us", static_cast<double>(drawn["us"]),
         [](const KnownResult& known) -> std::optional<double> {
             return known.explained.causes.whole.lines[Cause::gaps].value;
         }}};
    planted.budget = at.settled_budget();  // twenty runs of it may be too few independent ones
    planted.budget.counters = {.sets = {}, .metrics = {}};
    return planted;
}

/// Kernels that do nothing: all of their time is launching them.
Planted empty_kernels(const Planter& at, const Drawn& drawn) {
    const auto count = drawn["kernels"];
    Planted planted;
    planted.what = fmt::format("{} empty kernels", count);
    for (std::int64_t k = 0; k < count; ++k)
        planted.steps.push_back(
            {fmt::format("empty.{}", k), 0, 0, [stream = at.stream()] { cuda::probe::empty(stream); }});
    planted.judged = planted.steps.size() / 2;
    planted.right = {{Bound::launch}};
    planted.figures = {{"steps that are launch-bound", static_cast<double>(count), [](const KnownResult& known) {
                            return std::optional(static_cast<double>(
                                std::ranges::count(known.explained.verdicts.steps, Bound::launch, &Verdict::bound)));
                        }}};
    planted.budget = at.budget();
    planted.budget.counters.sets = {"core"};  // each pass over a thousand ranges takes a second
    return planted;
}

}  // namespace

std::vector<Truth> schedule_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"part-of-the-sms", cuda, {{"percent", 30, 55}, {"iterations", 1500, 3000}}, part_of_the_sms},
        {"one-block", cuda, {{"iterations", 1500, 3000}}, one_block},
        {"wave-plus-one", cuda, {{"iterations", 1000, 2000}}, wave_plus_one},
        {"known-cycles", cuda, {{"kilocycles", 1000, 3000}}, known_cycles},
        {"two-phases", cuda, {{"percent", 15, 50}, {"kilocycles", 1500, 3000}}, two_phases},
        {"known-gap", cuda, {{"us", 20000, 40000}}, known_gap},
        {"empty-kernels", cuda, {{"kernels", 800, 1200}}, empty_kernels},
    };
}

}  // namespace kbench
