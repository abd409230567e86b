// Is it bandwidth? What each test can say, and what it cannot, in sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/compare/compare.h"
#include "analysis/explain/verdict_rules.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Smaller shares of time are not worth a word.
constexpr double least_share = 0.01;

std::string small_percent(double share) { return share > 0 && share < 0.005 ? "under 1 %" : percent(share); }

std::string times_text(const Interval& ratio) {
    return fmt::format("{} times as long [{}, {}]", significant(ratio.value), significant(ratio.low),
                       significant(ratio.high));
}

/// "17 times", or below 1 "1/17 of".
std::string multiple(double ratio, std::string_view of_what) {
    return ratio >= 1 ? fmt::format("{} times the {}", significant(ratio), of_what)
                      : fmt::format("1/{} of the {}", significant(1 / ratio), of_what);
}

std::string roofs_origin(const PointComparison& point) {
    std::vector<std::string> of;
    for (const PointSide* side : point.sides())
        if (const auto& roof = side->roofs.bandwidth; roof && roof->origin == Origin::estimated)
            of.push_back(side->letter);
    return of.empty() ? "" : fmt::format(" (roofs of {}: datasheet, estimated)", fmt::join(of, " and "));
}

/// Why no ratio of roofs can be set beside the ratio of times; empty where one can.
std::string untested(const PointComparison& point) {
    for (const PointSide* side : point.sides())
        if (!side->roofs.unavailable.empty())
            return fmt::format("{} has no roofs ({})", side->letter, side->roofs.unavailable);
    if (!point.naive.bandwidth) return "a roof of DRAM is missing";
    if (point.same_roofs)
        return fmt::format("both have the same roofs within {}, so no ratio of roofs can explain a difference in time",
                           percent(same_roofs_tolerance - 1));
    return {};
}

/// On which side of both ratios the times are, and what that means.
std::string beyond(const Interval& times, const RatioTest& test) {
    const double least = std::min(*test.bandwidth, *test.flops), most = std::max(*test.bandwidth, *test.flops);
    if (times.value > most) return ": A reaches a larger share of its roofs";
    if (times.value < least) return ": A reaches a smaller share of its roofs";
    return ": the time lies between them";
}

std::string naive_judged(const Interval& times, const RatioTest& test) {
    const std::string factor = fmt::format("within a factor of {}", fit_tolerance);
    if (!test.flops)
        return fmt::format("Bandwidth {} {}; the FLOP/s are unknown, so that alone is no evidence.",
                           test.fits_bandwidth ? "fits" : "does not fit", factor);
    if (test.fits_bandwidth && test.fits_flops)
        return fmt::format("Both fit {} of the times' interval, so this test cannot tell bandwidth from FLOP/s.",
                           factor);
    if (test.fit == Fit::neither) return fmt::format("Neither fits {}{}.", factor, beyond(times, test));
    const char *fits = test.fits_bandwidth ? "bandwidth" : "FLOP/s",
               *other = test.fits_bandwidth ? "FLOP/s" : "bandwidth";
    if (test.fit == Fit::either)
        return fmt::format("Only {} fits {}, but the two ratios are too close to tell apart: no evidence.", fits,
                           factor);
    return fmt::format("Ratio of {} fits {}, that of {} does not: a hint, to be confirmed step by step.", fits, factor,
                       other);
}

std::string naive_text(const PointComparison& point) {
    const std::string takes = fmt::format("{} takes {}", point.b.letter, times_text(point.ratio));
    if (const std::string why = untested(point); !why.empty()) return fmt::format("{}; not tested: {}.", takes, why);
    const RatioTest& test = point.naive;
    const std::string flops =
        test.flops
            ? fmt::format(" and {}", multiple(*test.flops, fmt::format("{} FLOP/s", name(point.a.point->precision()))))
            : std::string();
    return fmt::format("{}; A has {}{}{}. {}", takes, multiple(*test.bandwidth, "DRAM bandwidth"), flops,
                       roofs_origin(point), naive_judged(point.ratio, test));
}

/// In the order of Fit.
constexpr std::array<std::string_view, fit_count> fit_words{
    "follow bandwidth and not FLOP/s", "follow FLOP/s and not bandwidth",
    "follow either (cannot tell: the two ratios are too close)", "follow neither", "could not be tested"};

std::string step_text(const PointComparison& point) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < fit_count; ++i)
        if (const double of_a = point.a.fit[i], of_b = point.b.fit[i]; std::max(of_a, of_b) >= least_share)
            parts.push_back(fmt::format("{} and {} {}", small_percent(of_a), small_percent(of_b), fit_words[i]));
    return fmt::format("Of the steps' time on A and on {}, {}.", point.b.letter, fmt::join(parts, "; "));
}

/// "compute-bound in 93 % of the steps' time, latency-bound in 4 %".
std::string bounds_text(const GroupSide& side) {
    std::vector<std::pair<double, Bound>> shares;
    for (std::size_t i = 0; i < side.bound_us.size(); ++i)
        if (const auto bound = static_cast<Bound>(i); side.bound_share(bound) >= least_share)
            shares.emplace_back(side.bound_share(bound), bound);
    std::ranges::sort(shares, std::greater{});
    return joined(shares, ", ",
                  [](const auto& part) { return fmt::format("{} {}", small_percent(part.first), name(part.second)); });
}

std::string breakdown_text(const PointSide& side) {
    if (!side.roofs.unavailable.empty()) return fmt::format("{}: none, for lack of roofs", side.letter);
    return fmt::format("{}: {} of the steps' time", side.letter, bounds_text(side.all));
}

/// Which rows are bandwidth-bound on either side, with their share of its steps' time.
std::string bandwidth_bound_rows(const PointComparison& point) {
    constexpr std::size_t most_names = 4;
    std::vector<std::string> names;
    for (const GroupComparison& group : point.groups) {
        std::vector<std::string> where;
        for (const auto& [side, own] : {std::pair{&point.a, &group.a}, {&point.b, &group.b}})
            if (own->bound() == Bound::bandwidth)
                where.push_back(
                    fmt::format("{} {}", side->letter, small_percent(own->time_us.value / side->all.time_us.value)));
        if (!where.empty()) names.push_back(fmt::format("{} ({})", group.name, fmt::join(where, ", ")));
    }
    if (names.empty())
        return fmt::format("No row is bandwidth-bound on {}.", !point.b.verdict   ? point.a.letter
                                                               : !point.a.verdict ? point.b.letter
                                                                                  : "either");
    const std::size_t rest = names.size() - std::min(names.size(), most_names);
    names.resize(names.size() - rest);
    return fmt::format("Bandwidth-bound, with their share of the time: {}{}.", fmt::join(names, ", "),
                       rest > 0 ? fmt::format(" and {} more", rest) : "");
}

/// What the test by step says of the whole; nothing where it cannot.
std::optional<Fit> scaling(const PointComparison& point) {
    if (point.same_roofs) return std::nullopt;
    for (const Fit fit : {Fit::bandwidth, Fit::flops}) {
        const auto i = static_cast<std::size_t>(fit);
        if (std::min(point.a.fit[i], point.b.fit[i]) >= majority_rule().threshold) return fit;
    }
    return std::nullopt;
}

std::string scaling_sentence(const PointComparison& point, std::optional<bool> breakdowns_say_bandwidth) {
    const std::optional<Fit> fit = scaling(point);
    if (!fit) return "Scaling, step by step, cannot tell.";
    const std::string follows = fmt::format("most of the steps' time follows {}", name(*fit));
    if (!breakdowns_say_bandwidth) return fmt::format("By scaling alone, {}.", follows);
    return fmt::format("Scaling {}: {}.",
                       (*fit == Fit::bandwidth) == *breakdowns_say_bandwidth ? "agrees" : "contradicts this", follows);
}

std::string verdict_words(const PointSide& side) {
    const Verdict& verdict = *side.verdict;
    std::string bound(verdict.bound == Bound::not_identifiable ? "" : name(verdict.bound));
    if (!bound.empty() && !verdict.level.empty()) bound += fmt::format(", {}", verdict.level);
    return fmt::format("{} {} ({}{}{})", side.letter, name(side.bandwidth.answer), bound,
                       bound.empty() || side.bandwidth.why.empty() ? "" : "; ", side.bandwidth.why);
}

std::string answer_text(const PointComparison& point) {
    if (!point.a.verdict && !point.b.verdict) return fmt::format("Cannot tell: {}.", untested(point));
    if (!point.a.verdict || !point.b.verdict)
        return fmt::format("By each run: {}; {} cannot tell, for lack of roofs.",
                           verdict_words(point.a.verdict ? point.a : point.b),
                           (point.a.verdict ? point.b : point.a).letter);
    const std::string text = fmt::format("By each run: {}; {}.", verdict_words(point.a), verdict_words(point.b));
    const BandwidthAnswer of_a = point.a.bandwidth.answer, of_b = point.b.bandwidth.answer;
    const auto is_open = [](const PointSide& side) {
        return side.bandwidth.answer == BandwidthAnswer::cannot_tell || side.verdict->bound == Bound::not_identifiable;
    };
    if (is_open(point.a) || is_open(point.b)) return fmt::format("{} {}", text, scaling_sentence(point, std::nullopt));
    if (of_a != of_b) return text + " They differ, so that no single ratio of roofs can explain the whole.";
    return fmt::format("{} {}", text, scaling_sentence(point, of_a == BandwidthAnswer::yes));
}

}  // namespace

std::vector<Evidence> evidence_of(const PointComparison& point) {
    std::vector<Evidence> evidence{{"naive test", naive_text(point)}};
    if (untested(point).empty()) evidence.push_back({"by step", step_text(point)});
    if (point.a.verdict || point.b.verdict)
        evidence.push_back({"verdicts", fmt::format("{}. {}. {}", breakdown_text(point.a), breakdown_text(point.b),
                                                    bandwidth_bound_rows(point))});
    evidence.push_back({"bandwidth?", answer_text(point)});
    return evidence;
}

}  // namespace kbench
