// Sentences about a backward and its forward, each of figures alone: what was not counted is said to be so, and a
// difference within the intervals is none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/explain/directions.h"
#include "analysis/explain/point_roofs.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Kinds with a smaller part of the backward's time are left to the table.
constexpr double told_share = 0.02;

std::string with_ends(const Interval& ratio) {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.low, ratio.high);
}

bool is_bound_by_dram(const DirectionWork& work) {
    return work.verdict.bound == Bound::bandwidth && work.verdict.level == name(Level::dram);
}

bool has_intervals(const DirectionPair& pair) { return pair.forward.has_interval && pair.backward.has_interval; }

/// How the time grew against the work that was done: per byte where DRAM binds both, else per FLOP.
std::string pace(const DirectionPair& pair) {
    const std::optional<Interval> time = pair.time_ratio();
    std::optional<double> work = pair.flop_ratio();
    std::string_view unit = "FLOP";
    if (pair.forward.is_counted && is_bound_by_dram(pair.forward) && is_bound_by_dram(pair.backward)) {
        work = pair.byte_ratio();
        unit = "byte";
    }
    if (!time || !work || *work <= 0) return "";
    if (!has_intervals(pair)) return "; too few samples to tell whether that is slower";
    const Interval by_unit = scaled(*time, 1 / *work);
    if (by_unit.low <= 1 && by_unit.high >= 1) return fmt::format(", within the intervals as long per {}", unit);
    std::string text = fmt::format(", {} times as long per {}", with_ends(by_unit), unit);
    if (by_unit.low > 1)
        text += fmt::format(": {} ms more than at the forward's pace",
                            significant((pair.backward.time_us->value - pair.forward.time_us->value * *work) * 1e-3));
    return text;
}

/// "2.80 [2.75, 2.86] times the time for 2.48 times the FLOPs and 2.94 times the bytes at DRAM".
std::string growth(const DirectionPair& pair) {
    const std::optional<double> flops = pair.flop_ratio(), bytes = pair.byte_ratio();
    const Interval time = *pair.time_ratio();
    std::string text =
        fmt::format("{} times the time", has_intervals(pair) ? with_ends(time) : fmt::format("{:.2f}", time.value));
    if (flops) text += fmt::format(" for {:.2f} times the FLOPs", *flops);
    if (bytes && pair.forward.is_counted) text += fmt::format(" and {:.2f} times the bytes at DRAM", *bytes);
    return text + pace(pair);
}

std::string occupancy(const DirectionPair& pair) {
    if (!pair.forward.occupancy_pct || !pair.backward.occupancy_pct) return "";
    return fmt::format("; achieved occupancy {:.0f} % forward and {:.0f} % backward", *pair.forward.occupancy_pct,
                       *pair.backward.occupancy_pct);
}

std::string bounds(const DirectionPair& pair) {
    const Verdict &forward = pair.forward.verdict, &backward = pair.backward.verdict;
    const bool is_told = forward.bound != Bound::not_identifiable,
               is_told_back = backward.bound != Bound::not_identifiable;
    if (!is_told && !is_told_back) return "; bottleneck unknown in both";
    if (!is_told) return fmt::format("; {} backward, forward unknown", verdict_text(backward));
    if (!is_told_back) return fmt::format("; {} forward, backward unknown", verdict_text(forward));
    if (verdict_text(forward) == verdict_text(backward)) return fmt::format("; both {}", verdict_text(forward));
    return fmt::format("; {} forward, {} backward", verdict_text(forward), verdict_text(backward));
}

std::string of_kind(const DirectionPair& kind, const DirectionWork& all, bool has_roofs) {
    const double share = kind.backward.time_us->value / all.time_us->value;
    if (!kind.time_ratio()) {
        const std::string ms = significant(kind.backward.time_us->value * 1e-3);
        if (kind.forward_within.empty()) return "";
        return fmt::format(
            "{}: the forward is computed within {}; the backward takes {} ms, {} of the backward's time.", kind.name,
            fmt::join(kind.forward_within, " and "), ms, percent(share));
    }
    std::string text = fmt::format("{}: {}{}", kind.name, growth(kind), occupancy(kind));
    if (has_roofs) text += bounds(kind);
    return text + ".";
}

std::string of_optimizer(const Directions& directions, bool has_roofs) {
    const DirectionWork& optimizer = directions.optimizer;
    const double us = optimizer.time_us->value;
    std::string text =
        fmt::format("The optimizer takes {} ms, {} of the steps' time, and moves {} ({}), {}", significant(us * 1e-3),
                    percent(us / directions.time_us), format_bytes(optimizer.bytes),
                    optimizer.is_counted ? "at DRAM, counted" : "by the cost model: not counted",
                    format_bytes_per_s(optimizer.bytes / us * 1e6));
    if (has_roofs)
        text += optimizer.verdict.bound == Bound::not_identifiable
                    ? std::string("; bottleneck unknown")
                    : fmt::format("; {}", verdict_text(optimizer.verdict));
    return text + ".";
}

}  // namespace

std::vector<std::string> direction_findings(const Directions& directions, bool has_roofs) {
    std::vector<std::string> findings;
    const DirectionPair& whole = directions.whole;
    if (whole.time_ratio())
        findings.push_back(
            fmt::format("The backward takes {}. Of products alone it would be 2 times the FLOPs.", growth(whole)));
    if (!whole.backward.time_us) return findings;
    for (const DirectionPair& kind : directions.by_op) {
        const std::optional<Interval>& time = kind.backward.time_us;  // none of a kind of the forward alone
        if (!time || time->value < told_share * whole.backward.time_us->value) continue;
        if (std::string text = of_kind(kind, whole.backward, has_roofs); !text.empty())
            findings.push_back(std::move(text));
    }
    if (directions.optimizer.time_us) findings.push_back(of_optimizer(directions, has_roofs));
    std::string missing;
    if (!whole.backward.is_counted) missing = "DRAM bytes";
    if (directions.is_gpu && !whole.backward.occupancy_pct)
        missing += missing.empty() ? "Achieved occupancy" : " and achieved occupancy";
    if (!missing.empty()) findings.push_back(fmt::format("{} of the backward: not counted.", missing));
    return findings;
}

}  // namespace kbench
