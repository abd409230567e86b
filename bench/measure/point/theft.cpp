// Time against bandwidth: the same forward while a thief keeps some of a GPU's SMs or of a CPU's cores, and takes a
// share of DRAM's bandwidth or of L2's there, only computes, or does nothing.
#include "bench/measure/point/theft.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/theft.h"
#include "bench/measure/point/cpu_thief.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "kbench/error.h"
#include "kbench/statistics.h"

namespace kbench {
namespace {

struct WantedRun {
    Taken taken;
    double share;  ///< what the thief is to take of its roof
};

/// Levels take turns and the runs that only compute stand between, so that what drifts meets none of them alone. The
/// largest shares, which decide, come first; the others show whether time follows them.
constexpr WantedRun wanted_runs[] = {
    {Taken::nothing, 0}, {Taken::compute, 0}, {Taken::dram, 0.3}, {Taken::l2, 0.3},   {Taken::compute, 0},
    {Taken::dram, 0.1},  {Taken::l2, 0.1},    {Taken::l2, 0.2},   {Taken::dram, 0.2}, {Taken::compute, 0},
};
constexpr std::size_t deciding_runs = 5;
/// Turns of a thief that takes the largest share and one that only computes, each for this part of a run's time. What
/// others do on the host for longer than a turn slows down both.
constexpr std::size_t most_turns = 16, turns_wanted = 12;
constexpr double turn_of_run = 0.2;
/// A turn launches the work to warm up and then at least twice.
constexpr double launches_in_turn = 3.5;
/// What a thief takes of SMs or of power makes the work beside it no longer than this many times: beside one that is
/// idle one wave of a grid may become two, beside one that computes the clock is lower.
constexpr double most_by_fewer_sms = 2.2;
constexpr double most_by_power = 1.5;

constexpr std::size_t least_runs = 3;

/// What time there is for runs, by device.
struct TheftTime {
    double longest_forward_s;
    double longest_in_full_s;  ///< longer ones are run beside the largest shares alone
    double longest_s;          ///< all runs
};
/// A run launches the work at least nine times, and takes up to 1.6 times as long beside a thief, which ends by itself
/// after 8 s. All ten runs of a longer forward would take more than 5 s.
constexpr TheftTime gpu_time{0.1, 0.04, std::numeric_limits<double>::infinity()};
/// The runs that there must be launch it ten times and take up to 1.3 times as long. Their time is bounded, so that no
/// other limit is needed.
constexpr TheftTime cpu_time{0.35, std::numeric_limits<double>::infinity(), 3};
constexpr double forwards_beside_thief = 13;

const TheftTime& time_of(const Device& device) { return device.is_gpu() ? gpu_time : cpu_time; }

std::string text_of(const WantedRun& wanted) {
    const std::string_view name = taken_names[static_cast<int>(wanted.taken)];
    if (wanted.share <= 0) return fmt::format("beside a thief of {}", name);
    return fmt::format("beside a thief of {:.0f} % of {}", 100 * wanted.share, name);
}

/// Bytes a second at the roof of what is taken; 0 where it has none or it is not known.
double roof_of(const Roofs& roofs, Taken taken) {
    if (taken != Taken::dram && taken != Taken::l2) return 0;
    const std::optional<Roof> roof = roofs.bandwidth(taken == Taken::dram ? Level::dram : Level::l2);
    return roof ? roof->per_s : 0;
}

/// The work beside the thief, whose share is what it took while launches were recorded.
ThiefRun run_beside(const TheftSetup& setup, const WantedRun& wanted, double roof) {
    ThiefRun run;
    run.takes = taken_names[static_cast<int>(wanted.taken)];
    run.multiprocessors = setup.multiprocessors;
    Thief& thief = setup.thief;
    Thief::Count at_begin, at_end;
    bool is_running = false;
    const auto begin = [&] { at_begin = thief.count(); };
    const auto end = [&] {
        at_end = thief.count();
        is_running = thief.is_running();
    };
    thief.start(wanted.taken, wanted.share * roof);
    const RangeTimes times = setup.times(setup.seconds, {begin, end});
    if (!is_running || !(at_end.seconds > at_begin.seconds))
        throw DeviceError("the thief had ended before the work beside it did");
    set_times(run, times);
    if (roof > 0) run.share = (at_end.bytes - at_begin.bytes) / (at_end.seconds - at_begin.seconds) / roof;
    return run;
}

double latency_s(const PartContext& at) { return at.point.end_to_end->latency.summary_ms.median * 1e-3; }

/// Why it is not to be measured; empty where it is. What no option of time changes comes first.
std::string why_not(const PartContext& at) {
    if (!at.device.is_gpu())
        if (std::string why = why_no_thief(at.device); !why.empty()) return why;
    const double longest_s = time_of(at.device).longest_forward_s;
    if (const double forward_s = latency_s(at); forward_s > longest_s)
        return at.device.is_gpu()
                   ? fmt::format("one run takes {:.2g} s; those of more than {:.2g} s may outlast the thief", forward_s,
                                 longest_s)
                   : fmt::format(
                         "one run takes {:.2g} s; those of more than {:.2g} s would take more than {:.0f} s in all",
                         forward_s, longest_s, cpu_time.longest_s);
    const double least_s = forwards_beside_thief * latency_s(at), left_s = experiments_left_s(at);
    if (least_s > left_s)
        return fmt::format("it would take {:.2g} s, and --time-budget leaves {:.2g} s", least_s, std::max(0.0, left_s));
    if (at.device.is_gpu() && roof_of(at.roofs, Taken::dram) <= 0)  // a CPU's thief finds one itself
        return "no roof of DRAM is known, of which a thief could take a share (kbench ceilings measures them)";
    return "";
}

/// Where a thief that takes no bandwidth made the work far longer, throws the runs away and tells that in their place.
bool drop_if_too_slow(BandwidthTheft& theft, double before_ms, double ms, const WantedRun& wanted) {
    const bool is_idle = wanted.taken == Taken::nothing;
    if (before_ms <= 0 || ms <= (is_idle ? most_by_fewer_sms : most_by_power) * before_ms) return false;
    theft.runs.clear();
    theft.unavailable = fmt::format("{} the work took {:.3g} ms, {:.3g} {}: more than what a thief takes explains",
                                    text_of(wanted), ms, before_ms, is_idle ? "alone" : "beside an idle one");
    return true;
}

/// Whether there can be as many turns as are wanted, in half of the time.
bool has_time_for_turns(const TheftSetup& setup) {
    const double turn_s = std::max(turn_of_run * setup.seconds, launches_in_turn * setup.alone_ms * 1e-3);
    return setup.in_turns && roof_of(setup.roofs, Taken::dram) > 0 && 2 * turn_s * turns_wanted <= setup.longest_s / 2;
}

/// The work beside an idle thief, then in turns. Each begins with what the one before ended with, so that a steady
/// drift lengthens as many runs of both kinds.
void run_in_turns(const TheftSetup& setup, BandwidthTheft& theft) {
    const auto start = std::chrono::steady_clock::now();
    const auto spent_s = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double roof = roof_of(setup.roofs, Taken::dram);
    constexpr WantedRun idle = wanted_runs[0], computing = wanted_runs[1], taking = wanted_runs[2];
    const auto begin = [&](const std::string& text) {
        if (setup.begin) setup.begin(text);
    };
    begin(text_of(idle));
    theft.runs.push_back(run_beside(setup, idle, 0));
    if (drop_if_too_slow(theft, setup.alone_ms, theft.runs.front().latency_ms, idle)) return;
    TheftSetup turn = setup;
    turn.seconds *= turn_of_run;
    std::size_t turns = 0;
    for (; turns < most_turns; ++turns) {
        const double s = spent_s();
        if (s > setup.longest_s || (turns >= turns_wanted && s > setup.longest_s / 2)) break;
        begin(text_of(taking) + " and one that computes, in turns");
        for (const bool takes : {turns % 2 != 0, turns % 2 == 0})
            theft.runs.push_back(run_beside(turn, takes ? taking : computing, takes ? roof : 0));
    }
    std::vector<double> computing_ms;
    for (const ThiefRun& run : theft.runs)
        if (run.takes == taken_names[static_cast<int>(Taken::compute)]) computing_ms.push_back(run.latency_ms);
    if (turns < turns_for_interval) {
        theft.runs.clear();
        theft.unavailable = fmt::format("beside a thief there was time for {} turns only", turns);
    } else {
        drop_if_too_slow(theft, theft.runs.front().latency_ms, summarise(computing_ms).median, computing);
    }
}

}  // namespace

std::string why_not_beside_thief(std::span<const StepResult> steps, int multiprocessors) {
    for (const StepResult& step : steps) {
        // Weight gradients are no chain, and neither is a kernel for each time step.
        if (step.direction == Direction::wgrad ||
            step.time_steps.value_or(1) <= static_cast<std::int64_t>(step.kernels.size()))
            continue;
        for (const KernelResult& kernel : step.kernels) {
            const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
            const std::int64_t places = std::int64_t{kernel.blocks_per_sm} * multiprocessors;
            const bool is_resident = kernel.waves.value && *kernel.waves.value <= 1;  // else none of it may wait
            if (is_resident && places > 0 && blocks > places)
                return fmt::format("all {} blocks of {} must run at once, and a thief leaves room for {}", blocks,
                                   step.implementation, places);
        }
    }
    return "";
}

void run_beside_thieves(const TheftSetup& setup, BandwidthTheft& theft) {
    if (has_time_for_turns(setup)) {
        try {
            return run_in_turns(setup, theft);
        } catch (const Error&) {
            theft.runs.clear();  // a few turns would be taken for runs of other kinds
            throw;
        }
    }
    const auto all = std::span(wanted_runs);
    const auto start = std::chrono::steady_clock::now();
    for (const WantedRun& wanted : setup.is_short ? all.first(deciding_runs) : all) {
        const double roof = roof_of(setup.roofs, wanted.taken);
        if (wanted.share > 0 && roof <= 0) continue;
        const double spent_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const auto runs = static_cast<double>(theft.runs.size());
        if (theft.runs.size() >= least_runs && spent_s * (runs + 1) > setup.longest_s * runs) break;
        if (setup.begin) setup.begin(text_of(wanted));
        theft.runs.push_back(run_beside(setup, wanted, roof));
        if (wanted.share > 0) continue;
        const bool is_idle = wanted.taken == Taken::nothing;
        const double before_ms = is_idle ? setup.alone_ms : theft.runs.front().latency_ms;
        if (drop_if_too_slow(theft, before_ms, theft.runs.back().latency_ms, wanted)) return;
    }
}

void measure_theft(const PartContext& at) {
    if (at.options.theft_s <= 0 || !can_divide(at)) return;
    const PhaseTimer timer(at.point, "theft");
    BandwidthTheft& theft = at.point.theft.emplace();
    theft.unavailable = why_not(at);
    if (!theft.unavailable.empty()) return;
    try {
        if (at.device.is_gpu())
            theft.unavailable =
                why_not_beside_thief(at.point.steps, multiprocessors_beside_thief(at.device.multiprocessors()));
        if (!theft.unavailable.empty()) return;
        const DeviceWithThief shared = share_with_thief(at.device, at.roofs);
        const bool is_made_again = shared.fewer_threads != nullptr;
        WorkOnPart work(is_made_again ? ranges_made_again(at.plan, at.device) : ranges_of(at.plan, at.device),
                        at.device);
        run_beside_thieves({.times = times_of(work),
                            .thief = *shared.thief,
                            .multiprocessors = shared.workers,
                            .roofs = shared.roofs,
                            .seconds = at.options.theft_s,
                            .alone_ms = latency_s(at) * 1e3,
                            .in_turns = !at.device.is_gpu(),
                            .is_short = latency_s(at) > time_of(at.device).longest_in_full_s,
                            .longest_s = std::min(time_of(at.device).longest_s, experiments_left_s(at)),
                            .begin = [&](const std::string& text) { at.begin(text); }},
                           theft);
    } catch (const Error& error) {
        at.require_device();
        const auto took = [](const ThiefRun& run) { return run.share > 0; };
        if (std::ranges::none_of(theft.runs, took)) {  // then nothing is known of any bandwidth
            theft.runs.clear();
            theft.unavailable = error.what();
        } else {
            at.warn(fmt::format("time against bandwidth ends after {} runs: {}", theft.runs.size(), error.what()));
        }
    }
}

}  // namespace kbench
