// A comparison of two sides is told in a sentence a point, a table, and as JSON.
#include "analysis/report/ab.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/base/format.h"

namespace kbench {
namespace {

double percent_of(double ratio) { return 100 * (ratio - 1); }

/// What neighbouring pairs that correlate did to the interval; empty where they changed it little.
std::string widened_text(const AbPoint& point) {
    constexpr double little = 1.1;
    const PairCorrelation correlation = point.correlation();
    if (correlation.widening < little) return "";
    return fmt::format(" Neighbouring pairs correlate by {:.2f}, which made the interval {:.1f} times as wide.",
                       correlation.of_ratios.value, correlation.widening);
}

/// What rounding adds to the interval; empty where that is little.
std::string rounded_text(const AbPoint& point) {
    constexpr double little = 0.1;
    const Interval rounded = *point.ratio(), exact = *point.unrounded_ratio();
    const double most = std::max(exact.low / rounded.low, rounded.high / exact.high) - 1;
    if (most <= little * half_width(rounded)) return "";
    return fmt::format(" The few digits that are printed widen it by {:.2f} % either way.", 100 * most);
}

/// "slower", or "less than 0.80 % apart".
std::string verdict_cell(const AbPoint& point, double target) {
    const AbVerdict verdict = point.verdict(target);
    if (verdict != AbVerdict::small_difference) return std::string(name(verdict, point.metric));
    return fmt::format("less than {:.2f} % apart", 100 * largest_difference(*point.ratio()));
}

std::string without_ratio(const AbPoint& point) {
    if (const std::size_t fewest = info(point.metric).fewest_pairs; point.pairs.size() < fewest)
        return fmt::format("Cannot tell: {} {}, fewer than {} say too little.", point.pairs.size(),
                           point.pairs.size() == 1 ? "pair" : "pairs", fewest);
    const PairCorrelation correlation = point.correlation();
    if (!correlation.is_too_much()) return "Cannot tell: a figure is not positive.";
    return fmt::format(
        "Cannot tell: neighbouring pairs may correlate by up to {:.2f}, where at most {:.2f} may be. More pairs (--budget) show whether they do. If so, something such as other work on the machine changes A and B unlike each other, and more slowly than pairs follow each other.",
        correlation.of_ratios.high, most_pair_correlation);
}

/// What is compared of commands; empty where it is the latency that kbench measured.
std::string compared_text(const AbComparison& comparison) {
    switch (comparison.metric) {
        case AbMetric::latency: break;
        case AbMetric::wall: return "Whole runs are compared, from start to end. ";
        case AbMetric::printed:
            return fmt::format("The last number that a run prints where {} matches is compared. ",
                               one_line(comparison.pattern));
    }
    return "";
}

std::string_view ratio_text(const AbComparison& comparison) {
    if (comparison.metric == AbMetric::latency) return "the pairs' mean ratio";
    return "the Hodges-Lehmann estimate of the pairs' ratios, which stands for typical runs, as outliers hardly move it";
}

std::string_view checked_text(const AbComparison& comparison) {
    if (comparison.metric != AbMetric::latency)
        return "One run of each came first and is not counted; what the commands compute was not checked.";
    return comparison.verified ? "One run of each was verified first and not counted." : "No run was verified.";
}

std::string sides(const AbSide& side) {
    std::string text = fmt::format("{}: {}", side.name, one_line(side.command));
    if (!side.revision.empty()) text += fmt::format(" (revision {}, {})", side.revision, side.device);
    return text;
}

}  // namespace

std::string ab_sentence(const AbPoint& point, double target) {
    const std::optional<Interval> ratio = point.ratio();
    if (!ratio) return without_ratio(point);
    const std::string interval = fmt::format("[{:+.2f} %, {:+.2f} %]", percent_of(ratio->low), percent_of(ratio->high));
    const double largest = 100 * largest_difference(*ratio);
    const bool of_time = info(point.metric).is_time;
    const std::string_view verb = of_time ? "takes" : "is";
    const auto told = [&] {
        switch (point.verdict(target)) {
            case AbVerdict::higher:
                return fmt::format("B {} {:.2f} % {} than A {}.", verb, percent_of(ratio->value),
                                   of_time ? "longer" : "higher", interval);
            case AbVerdict::lower:
                return fmt::format("B {} {:.2f} % {} than A {}.", verb, -percent_of(ratio->value),
                                   of_time ? "less time" : "lower", interval);
            case AbVerdict::small_difference:
                return fmt::format("A and B differ by less than {:.2f} % {}; which of them is {} is unknown.", largest,
                                   interval, name(AbVerdict::lower, point.metric));
            case AbVerdict::cannot_tell: break;
        }
        return fmt::format(
            "Cannot tell {}: up to {:.2f} % either way is possible; more time (--budget) or longer runs{} narrow it.",
            interval, largest, point.metric == AbMetric::latency ? " (--time-budget behind --)" : "");
    };
    return told() + widened_text(point) + rounded_text(point);
}

/// Each pair's ratio in the order in which they ran: what drifts or jumps is seen.
Chart pairs_chart(const AbComparison& comparison) {
    const bool of_time = info(comparison.metric).is_time;
    const char* unit = of_time ? " ms" : "";
    CurveChart chart{{"pair"}, {of_time ? "B takes longer by, %" : "B is higher by, %"}, {}};
    for (const AbPoint& point : comparison.points) {
        CurveSeries series{std::vector<double>{}, {point.title.empty() ? "B over A" : point.title}};
        for (std::size_t i = 0; i < point.pairs.size(); ++i) {
            const double a = point.pairs[i].a, b = point.pairs[i].b;
            if (a <= 0) continue;
            std::get<std::vector<double>>(series.x).push_back(static_cast<double>(i + 1));
            series.y.add(percent_of(b / a), fmt::format("pair {}\nA {}{}, B {}{}", i + 1, significant(a, 4), unit,
                                                        significant(b, 4), unit));
        }
        if (!series.y.values.empty()) chart.series.push_back(std::move(series));
    }
    return {"Pair by pair", "measured: one run of each side next to each other", std::move(chart)};
}

Document ab_document(const AbComparison& comparison) {
    const bool of_time = info(comparison.metric).is_time;
    Section answer{""};
    if (comparison.points.empty())
        answer.add(Paragraph{fmt::format("Cannot tell: no pair was measured; {}.", comparison.ended), Tone::lead});
    for (const AbPoint& point : comparison.points)
        answer.add(Paragraph{
            fmt::format("{}{}{}", point.title, point.title.empty() ? "" : ": ", ab_sentence(point, comparison.target)),
            Tone::lead});
    for (const AbPoint* point : comparison.regressions()) {
        const double bound = point->ratio()->low > 1 ? *comparison.fail_above : -*comparison.fail_below;
        answer.add(Paragraph{fmt::format("{}{}all of it beyond {:g} %: a regression.", point->title,
                                         point->title.empty() ? "" : ": ", 100 * bound),
                             Tone::warning});
    }
    Bullets what{{sides(comparison.a), sides(comparison.b)}};
    if (!comparison.machine.empty()) what.items.push_back("on " + comparison.machine);
    answer.add(std::move(what));
    answer.add(pairs_chart(comparison));
    Rows rows{{words("point"), figures("pairs"), figures(of_time ? "A ms" : "A"), figures(of_time ? "B ms" : "B"),
               figures("B/A"), figures("from"), figures("to"), words("B is")}};
    for (const AbPoint& point : comparison.points) {
        const std::optional<Interval> ratio = point.ratio();
        const auto cell = [&](double Interval::*end) { return ratio ? fmt::format("{:.4f}", (*ratio).*end) : ""; };
        rows.rows.push_back({point.title, std::to_string(point.pairs.size()), significant(point.a(), 4),
                             significant(point.b(), 4), cell(&Interval::value), cell(&Interval::low),
                             cell(&Interval::high), verdict_cell(point, comparison.target)});
    }
    answer.add(std::move(rows));
    Section method{"How it was measured"};
    method.is_folded = true;
    method.add(Paragraph{fmt::format(
        "{}Each pair is one run of A and one of B next to each other, each a process of its own, in the order A B B A. The interval (95 %) is that of {}. It holds what differs from run to run on this machine. Another machine of the same kind may differ by more. {} Ended: {}.",
        compared_text(comparison), ratio_text(comparison), checked_text(comparison), comparison.ended)});
    return {"A and B in turn", {std::move(answer), std::move(method)}};
}

std::string ab_json(const AbComparison& comparison) {
    using Json = nlohmann::ordered_json;
    const auto side = [](const AbSide& of) {
        return Json{{"command", of.command}, {"revision", of.revision}, {"device", of.device}};
    };
    const auto share = [](const std::optional<double>& given) { return given ? Json(*given) : Json(); };
    const bool of_time = info(comparison.metric).is_time;
    Json points = Json::array();
    for (const AbPoint& point : comparison.points) {
        Json pairs = Json::array();
        for (const AbPair& pair : point.pairs)
            pairs.push_back({{of_time ? "a_ms" : "a", pair.a}, {of_time ? "b_ms" : "b", pair.b}});
        const std::optional<Interval> ratio = point.ratio();
        points.push_back({{"point", point.title},
                          {"ratio", ratio ? Json(ratio->value) : Json()},
                          {"ratio_low", ratio ? Json(ratio->low) : Json()},
                          {"ratio_high", ratio ? Json(ratio->high) : Json()},
                          {"verdict", name(point.verdict(comparison.target), comparison.metric)},
                          {"differs_by_less_than", ratio ? Json(largest_difference(*ratio)) : Json()},
                          {"pair_correlation", point.correlation().of_ratios.value},
                          {"widening", point.correlation().widening},
                          {"pairs", std::move(pairs)}});
    }
    const Json document{{"schema", "kbench.ab/1"},
                        {"started_at", comparison.started_at},
                        {"a", side(comparison.a)},
                        {"b", side(comparison.b)},
                        {"metric", info(comparison.metric).name},
                        {"pattern", comparison.pattern.empty() ? Json() : Json(comparison.pattern)},
                        {"interval", comparison.target},
                        {"fail_above", share(comparison.fail_above)},
                        {"fail_below", share(comparison.fail_below)},
                        {"verified", comparison.verified},
                        {"machine", comparison.machine.empty() ? Json() : Json(comparison.machine)},
                        {"ended", comparison.ended},
                        {"regressions", comparison.regressions().size()},
                        {"points", std::move(points)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace kbench
