// Truths of a CPU, by the loops that measure its roofs and on the same threads. Most CPUs that kbench meets show no
// counters: there, what no roof binds cannot be told from anything else, and saying so is right.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bench/device/fewer_threads.h"
#include "bench/measure/point/thief.h"
#include "cpu/probe/chains.h"
#include "cpu/probe/on_threads.h"
#include "cpu/probe/probe.h"
#include "cpu/probe/streams.h"
#include "kbench/error.h"
#include "tests/truths/cause_figures.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"
#include "tests/truths/theft_figures.h"

namespace kbench {
namespace {

/// What no roof binds: anything but bandwidth, FLOP/s and launches, which a CPU has none of.
std::vector<RightVerdict> no_roof_binds() { return {{Bound::latency}, {Bound::occupancy}, {Bound::not_identifiable}}; }

/// A pass over arrays that are several times the caches.
struct Pass {
    double bytes;
    std::function<void()> run;
};

/// The first `busy` of the threads read or combine them, each its own part; stores pass the caches, so that nothing
/// moves but what is counted.
Pass pass_over(std::int64_t bytes, bool is_triad, int threads, int busy) {
    const auto streams = std::make_shared<cpu::Streams>(bytes, threads);
    const auto sums = std::make_shared<std::vector<double>>(static_cast<std::size_t>(threads));
    return {streams->read_bytes() * busy / threads, [=] {
                cpu::on_threads(threads, [&](int thread) {
                    if (thread >= busy) return;
                    if (is_triad)
                        streams->triad(thread, 3);
                    else
                        (*sums)[static_cast<std::size_t>(thread)] = streams->read(thread);
                });
            }};
}

std::int64_t stream_bytes(const Planter& at, const Drawn& drawn) {
    if (const std::string why = cpu::Streams::unavailable(); !why.empty()) throw Unsupported(why);
    const DeviceInfo& info = at.device().info();
    return cpu::stream_bytes(info.cache_bytes, at.device().free_bytes()) * drawn["percent"] / 100;
}

Planted cpu_stream(const Planter& at, const Drawn& drawn) {
    const int threads = at.device().info().threads;
    const bool is_triad = drawn["triad"] != 0;
    const Pass pass = pass_over(stream_bytes(at, drawn), is_triad, threads, threads);
    Planted planted;
    planted.what =
        fmt::format("{} of {:.2f} GB by {} threads", is_triad ? "triad" : "read", pass.bytes * 1e-9, threads);
    planted.steps = {{"stream", 0, pass.bytes, pass.run}};
    planted.right = {{Bound::bandwidth, {"DRAM"}, "memory-roof"}};
    planted.figures = {{"bytes moved", pass.bytes, [](const KnownResult& known) -> std::optional<double> {
                            for (const RoofTime& roof_time : known.explained.roof_times.front().work)
                                if (roof_time.level == Level::dram) return roof_time.work;
                            return std::nullopt;
                        }}};
    planted.budget = at.budget();
    return planted;
}

const cpu::Chain& fp32_chain() {
    const cpu::Chain* widest = nullptr;
    for (const cpu::Chain& chain : cpu::chains())
        if (chain.ceiling.ends_with("_fp32") && chain.unavailable().empty() &&
            (widest == nullptr || chain.lanes > widest->lanes))
            widest = &chain;
    if (widest == nullptr) throw Unsupported("this CPU has neither AVX2 nor AVX-512");
    return *widest;
}

/// Rounds of multiply-adds in registers by the first `busy` of the threads; the others have nothing to do.
std::function<void(std::int64_t rounds)> chain_loop(int threads, int busy) {
    const cpu::Chain& chain = fp32_chain();
    struct Values {
        std::vector<double> a, b, start, end;
    };
    const auto elements = static_cast<std::size_t>(chain.elements()), lanes = static_cast<std::size_t>(chain.operands);
    // x = -x + b goes back and forth between two values for ever.
    const auto values = std::make_shared<std::vector<Values>>(
        static_cast<std::size_t>(threads), Values{std::vector(lanes, -1.0), std::vector(lanes, 1.5),
                                                  std::vector(elements, 0.25), std::vector(elements, 0.0)});
    return [=, run = chain.run](std::int64_t rounds) {
        cpu::on_threads(threads, [&](int thread) {
            if (thread >= busy) return;
            Values& v = (*values)[static_cast<std::size_t>(thread)];
            run(rounds, v.a.data(), v.b.data(), v.start.data(), v.end.data());
        });
    };
}

double chain_flops(int busy, std::int64_t rounds) {
    return fp32_chain().flops_a_round() * static_cast<double>(rounds) * busy;
}

KnownStep chain_step(std::string name, int threads, int busy, std::int64_t rounds) {
    return {std::move(name), chain_flops(busy, rounds), 0, [=, loop = chain_loop(threads, busy)] { loop(rounds); }};
}

/// The loop of the roof itself, on all cores.
Planted cpu_fma(const Planter& at, const Drawn& drawn) {
    const int threads = at.device().info().threads;
    Planted planted;
    planted.what = fmt::format("FMA in registers, {}, {} threads", fp32_chain().instruction_set, threads);
    planted.steps = {chain_step("fma", threads, threads, drawn["kilorounds"] * 1000)};
    planted.right = {{Bound::compute}};
    planted.budget = at.budget();
    return planted;
}

/// The same on one core of all: no roof of all cores is near. What one core does beside them is no figure here, as it
/// has a turbo clock of its own.
Planted cpu_one_thread(const Planter& at, const Drawn& drawn) {
    const int threads = at.device().info().threads;
    if (threads < 2) throw Unsupported("this CPU has one core");
    Planted planted;
    planted.what = fmt::format("FMA on one of {} threads; not countable here", threads);
    planted.steps = {chain_step("one.thread", threads, 1, drawn["kilorounds"] * 1000)};
    planted.right = no_roof_binds();
    planted.budget = at.budget();
    return planted;
}

/// Every thread follows a cycle of its own through `nodes` cache lines, in no order that a prefetcher could guess: a
/// line at a time for each core, where bandwidth asks for tens of them.
Planted cpu_chase(const Planter& at, const Drawn& drawn) {
    constexpr std::uint32_t words_a_line = 16;
    const std::uint32_t nodes = 1u << drawn["log2 nodes"];
    const DeviceInfo& info = at.device().info();
    const std::int64_t bytes = std::int64_t{info.threads} * nodes * words_a_line * 4;
    if (bytes > at.device().free_bytes() / 2) throw Unsupported("there is no memory for a chain a thread");
    const std::int64_t loads = drawn["kiloloads"] * 1000;
    const Memory memory = at.allocate(bytes);
    auto* const words = as<std::uint32_t>(memory);
    for (int thread = 0; thread < info.threads; ++thread)
        for (std::uint32_t node = 0; node < nodes; ++node)  // full period: Knuth, TAOCP 2, theorem 3.2.1.2A
            words[(std::size_t(thread) * nodes + node) * words_a_line] = (node * 1664525u + 1013904223u) & (nodes - 1);
    const auto ends = std::make_shared<std::vector<std::uint32_t>>(static_cast<std::size_t>(info.threads));
    Planted planted;
    planted.what = fmt::format("dependent loads by {} threads: latency; not countable here", info.threads);
    planted.steps = {{"chase", 0, static_cast<double>(loads) * info.threads * 64, [=, threads = info.threads] {
                          cpu::on_threads(threads, [&](int thread) {
                              const std::uint32_t* mine =
                                  as<std::uint32_t>(memory) + std::size_t(thread) * nodes * words_a_line;
                              std::uint32_t node = (*ends)[static_cast<std::size_t>(thread)];
                              for (std::int64_t load = 0; load < loads; ++load)
                                  node = mine[std::size_t{node} * words_a_line];
                              (*ends)[static_cast<std::size_t>(thread)] = node;
                          });
                      }}};
    planted.right = no_roof_binds();
    planted.budget = at.budget();
    return planted;
}

/// Multiply-adds by all threads, and then each watches a clock: what does not grow with the rounds. What grows takes
/// what it takes alone.
Planted cpu_known_fixed(const Planter& at, const Drawn& drawn) {
    using Clock = std::chrono::steady_clock;
    const int threads = at.device().info().threads;
    const std::int64_t rounds = drawn["kilorounds"] * 1000;
    const auto fixed = std::chrono::microseconds(drawn["us"]);
    const auto loop = chain_loop(threads, threads);
    const auto at_size = [=](double factor) {
        loop(static_cast<std::int64_t>(static_cast<double>(rounds) * factor));
        cpu::on_threads(threads, [&](int) {
            const auto end = Clock::now() + fixed;
            while (Clock::now() < end) {
            }
        });
    };
    const double loop_us = at.ms([=] { loop(rounds); }) * 1e3;
    Planted planted;
    planted.what = fmt::format("{:.0f} us of FMA in registers, then {} us on the clock", loop_us, drawn["us"]);
    KnownStep& step =
        planted.steps.emplace_back(KnownStep{"loop", chain_flops(threads, rounds), 0, [=] { at_size(1); }});
    step.at_size = at_size;
    step.axis = "rounds";
    planted.figures = cause_figures({{"fixed time, us", {Cause::fixed}, static_cast<double>(drawn["us"])},
                                     {"all that grows, us", {Cause::useful, Cause::clock, Cause::main_loop}, loop_us}});
    planted.budget = at.budget();
    planted.budget.size_scaling_s = 0.5;
    return planted;
}

/// Passes over arrays that are several times the caches, with the traffic that has the higher roof: all of the time is
/// at DRAM's roof.
Planted cpu_stream_causes(const Planter& at, const Drawn& drawn) {
    const bool is_triad = *at.roof("cpu_dram_triad").value.value > *at.roof("cpu_dram_read").value.value;
    const int threads = at.device().info().threads;
    const Pass pass = pass_over(stream_bytes(at, drawn), is_triad, threads, threads);
    const auto at_size = [run = pass.run](double factor) {
        for (int done = 0; done < static_cast<int>(factor); ++done) run();
    };
    Planted planted;
    planted.what = fmt::format("{} of {:.2f} GB", is_triad ? "triad" : "read", pass.bytes * 1e-9);
    KnownStep& step = planted.steps.emplace_back(KnownStep{"stream", 0, pass.bytes, pass.run});
    step.at_size = at_size;
    step.axis = "passes";
    planted.figures = figures_of_one_cause(Cause::useful);
    planted.budget = at.budget();
    planted.budget.size_scaling_s = 0.5;
    return planted;
}

/// Long enough for an interval where others use the host's bandwidth, too.
constexpr double theft_s = 0.3;

/// A CPU divided between work and a thief, as far as a truth must know it beforehand.
struct DividedCpu {
    int work_threads;
    double dram_bytes_per_s;  ///< the thief takes shares of it
};
DividedCpu divided_cpu(const Planter& at) {
    try {
        const DeviceWithThief shared = share_with_thief(at.device(), Roofs(at.roofs(), name(at.device().kind())));
        return {shared.workers, shared.roofs.bandwidth(Level::dram).value().per_s};
    } catch (const DeviceError& error) {
        throw Unsupported(error.what());
    }
}

/// Where the work's threads reach what all cores do DRAM binds them. Else fewer of them read, so that a thief leaves
/// more than they ask for: it does not.
Planted cpu_theft_from_stream(const Planter& at, const Drawn& drawn) {
    constexpr double reached = 0.9, left = 0.2;
    const std::int64_t bytes = stream_bytes(at, drawn);
    const DividedCpu divided = divided_cpu(at);
    const auto beside = [bytes, threads = divided.work_threads](int busy) {
        return pass_over(bytes, false, threads, busy);
    };
    const auto share_of = [&](int busy) {
        const FewerThreads fewer(at.device(), divided.work_threads);
        const Pass pass = beside(busy);
        return pass.bytes / (at.ms(pass.run) * 1e-3) / divided.dram_bytes_per_s;
    };
    int busy = divided.work_threads;
    double share = share_of(busy);
    while (share < reached && share > left && busy > 1) {
        busy /= 2;
        share = share_of(busy);
    }
    if (share > left && share < reached)
        throw Unsupported(fmt::format("one thread reaches {:.0f} % of what all cores do", 100 * share));
    Planted planted;
    planted.what =
        fmt::format("reads by {} threads, {:.0f} % of what all cores reach, beside a thief", busy, 100 * share);
    const int threads = at.device().info().threads;
    const Pass alone = pass_over(bytes, false, threads, busy == divided.work_threads ? threads : busy);
    KnownStep& step = planted.steps.emplace_back(KnownStep{"stream", 0, alone.bytes, alone.run});
    step.on_part = [beside, busy](Device&) { return beside(busy).run; };
    add_elasticity(planted, Level::dram, share >= reached ? 1 : 0);
    if (share >= reached) planted.right = {{Bound::bandwidth, {"DRAM"}}};
    planted.budget = at.budget();
    planted.budget.theft_s = theft_s;
    return planted;
}

Planted cpu_theft_from_fma(const Planter& at, const Drawn& drawn) {
    const DividedCpu divided = divided_cpu(at);
    const int threads = at.device().info().threads;
    const std::int64_t rounds = drawn["kilorounds"] * 1000;
    Planted planted;
    planted.what = fmt::format("FMA in registers by {} threads beside a thief", divided.work_threads);
    KnownStep& step = planted.steps.emplace_back(chain_step("fma", threads, threads, rounds));
    step.on_part = [rounds, busy = divided.work_threads](Device&) -> std::function<void()> {
        return [rounds, loop = chain_loop(busy, busy)] { loop(rounds); };
    };
    add_elasticity(planted, Level::dram, 0);
    planted.right = {{Bound::compute}};
    planted.budget = at.budget();
    planted.budget.theft_s = theft_s;
    return planted;
}

/// One load at a time for each thread; latency grows a little with other traffic.
Planted cpu_theft_from_chase(const Planter& at, const Drawn& drawn) {
    const DividedCpu divided = divided_cpu(at);
    Planted planted = cpu_chase(at, drawn);
    planted.what += " beside a thief";
    KnownStep& step = planted.steps.front();
    if (divided.work_threads < at.device().info().threads)
        throw Unsupported("each chain has a thread of its own, and a thief would take some");
    step.on_part = [run = step.enqueue](Device&) { return run; };
    add_elasticity(planted, Level::dram, 0);
    planted.budget.theft_s = theft_s;
    return planted;
}

}  // namespace

std::vector<Truth> cpu_truths() {
    constexpr BackendKind cpu = BackendKind::cpu;
    return {
        {"cpu-stream", cpu, {{"percent", 60, 100}, {"triad", 0, 1}}, cpu_stream},
        {"cpu-fma", cpu, {{"kilorounds", 2000, 5000}}, cpu_fma},
        {"cpu-chase", cpu, {{"log2 nodes", 19, 20}, {"kiloloads", 40, 100}}, cpu_chase},
        {"cpu-one-thread", cpu, {{"kilorounds", 2000, 5000}}, cpu_one_thread},
        {"cpu-known-fixed", cpu, {{"kilorounds", 2000, 5000}, {"us", 5000, 20000}}, cpu_known_fixed},
        {"cpu-stream-causes", cpu, {{"percent", 60, 100}}, cpu_stream_causes},
        {"cpu-theft-from-stream", cpu, {{"percent", 60, 100}}, cpu_theft_from_stream},
        {"cpu-theft-from-fma", cpu, {{"kilorounds", 500, 1500}}, cpu_theft_from_fma},
        {"cpu-theft-from-chase", cpu, {{"log2 nodes", 19, 20}, {"kiloloads", 40, 100}}, cpu_theft_from_chase},
    };
}

}  // namespace kbench
