// The parts of an explanation, and the three sentences that come first.
#include "analysis/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "analysis/explain/impossible.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// How long it takes, and whether the account of it closes.
std::string first_sentence(const Point& point, const Ledger& ledger) {
    const TimeUnit unit = time_unit(ledger.end_to_end_us * 1e-3);
    return fmt::format("{} takes {} {} on this {}; steps, gaps and corrections add up to it within {:.1f} %{}.",
                       sentence_name(point), significant(ledger.end_to_end_us * 1e-3 * unit.per_ms), unit.name,
                       point.backend() == "cuda" ? "GPU" : "CPU", std::abs(ledger.residual_share()) * 100,
                       ledger.closes() ? "" : ", which is more than the 2 % that this account should close to");
}

std::string level_text(const Verdict& verdict) {
    return verdict.level.empty() ? "" : fmt::format(" ({})", verdict.level);
}

/// Under this share of the time DRAM's traffic cannot be what binds the whole: half of what the rule of a roof asks
/// for.
constexpr double small_dram_share = 0.30;

/// What memory bandwidth has to do with it, which is the first thing that people ask.
std::string dram_text(const Ledger& ledger, const Attribution& attribution) {
    const auto dram = std::ranges::find(attribution.levels, Level::dram, &LevelTraffic::level);
    if (!attribution.unavailable.empty() || dram == attribution.levels.end()) return "";
    const double share = dram->ms * 1e3 / ledger.end_to_end_us;
    return fmt::format("; its DRAM traffic ({}) takes {} of the time at full bandwidth{}", name(dram->origin),
                       percent(share), share < small_dram_share ? ", so memory bandwidth does not bind it" : "");
}

/// What binds it, with the share that the roofs demand.
std::string second_sentence(const Ledger& ledger, const Verdict& verdict, const Attribution& attribution) {
    if (!ledger.roofs_unavailable.empty())
        return fmt::format("What binds it cannot be said: {}.", ledger.roofs_unavailable);
    const std::string demand =
        fmt::format("the roofs demand {} of the time", percent(ledger.total.demand_us() / ledger.end_to_end_us));
    const std::string dram = dram_text(ledger, attribution);
    std::string rejected;
    for (const Hypothesis& hypothesis : verdict.hypotheses)
        if (hypothesis.finding == Finding::rejected)
            rejected += fmt::format("{}{}", rejected.empty() ? "; not " : ", not ", name(hypothesis.bound));
    if (verdict.bound == Bound::not_identifiable)
        return fmt::format("No single thing binds it ({}{}): {}{}.",
                           verdict.evidence.empty() ? verdict.rule : verdict.evidence.front(), rejected, demand, dram);
    return fmt::format("It is {}{}{}: {}; {}{}.", name(verdict.bound), level_text(verdict), rejected,
                       verdict.evidence.front(), demand, dram);
}

/// Losses under this share of the time are not worth a sentence.
constexpr double noteworthy_loss = 0.01;

/// The largest line above the demand, and what would change it.
std::string third_sentence(const Ledger& ledger, const Verdict& verdict) {
    if (!ledger.roofs_unavailable.empty())
        return "What would change it cannot be said either; measured ceilings (kbench ceilings) would tell.";
    Line largest = Line::extra_work;
    for (std::size_t i = static_cast<std::size_t>(Line::extra_work); i <= static_cast<std::size_t>(Line::dependency);
         ++i)
        if (ledger.total[line_at(i)] > ledger.total[largest]) largest = line_at(i);
    const double share = ledger.total[largest] / ledger.end_to_end_us;
    const char* change = "as no one thing binds it, no one change of the machine shortens it in proportion";
    switch (verdict.bound) {
        case Bound::bandwidth:
            change =
                "more bandwidth at that level, fewer bytes (fusing, narrower types) or a larger cache would shorten it";
            break;
        case Bound::compute:
            change = verdict.level == issue_slots
                         ? "fewer instructions for the same work would shorten it, more bandwidth would not"
                         : "a faster unit (a narrower precision, more SMs, a higher power limit) would shorten it, "
                           "more memory "
                           "bandwidth would not";
            break;
        case Bound::latency:
            change = "neither more bandwidth nor more FLOP/s would shorten it much; more work in flight would";
            break;
        case Bound::launch:
            change = "fewer and longer kernels (fusing, a larger batch) would shorten it, other hardware hardly";
            break;
        case Bound::occupancy:
            change =
                "more blocks or more warps an SM (other tiles, a larger batch) would shorten it before other hardware "
                "does";
            break;
        case Bound::not_identifiable: break;
    }
    if (share < noteworthy_loss) return fmt::format("Above the roofs' demand nothing is lost; {}.", change);
    return fmt::format("Above the roofs' demand the largest loss is {} ({} of the time: {}); {}.", info(largest).name,
                       percent(share), info(largest).what, change);
}

}  // namespace

Explanation explain(const Result& result, const Point& point) {
    const Roofs roofs(result);
    Explanation explanation;
    explanation.ledger = make_ledger(point, roofs);
    const Ledger& ledger = explanation.ledger;
    explanation.cycles = account_cycles(point);
    explanation.roofline = make_roofline(ledger, roofs);
    explanation.attribution = attribute_bandwidth(ledger, roofs);
    explanation.verdicts = judge(ledger, roofs);
    explanation.impossible = impossible_figures(result, point, ledger, roofs);
    if (!explanation.impossible.empty()) {
        for (const std::string& figure : explanation.impossible)
            explanation.answer.push_back(fmt::format("impossible: {}.", figure));
        explanation.answer.push_back("No conclusion is drawn from figures of which one is wrong.");
        explanation.verdicts = withheld(std::move(explanation.verdicts), "impossible figures");
        return explanation;
    }
    if (!ledger.unavailable.empty()) {
        const double ms = ledger.end_to_end_us * 1e-3;
        const TimeUnit unit = time_unit(ms);
        explanation.answer = {ms > 0 ? fmt::format("{} takes {} {} on this {}. Why cannot be said: {}.",
                                                   sentence_name(point), significant(ms * unit.per_ms), unit.name,
                                                   point.backend() == "cuda" ? "GPU" : "CPU", ledger.unavailable)
                                     : fmt::format("{}: {}.", short_name(point), ledger.unavailable)};
        return explanation;
    }
    explanation.answer = {first_sentence(point, ledger),
                          second_sentence(ledger, explanation.verdicts.model, explanation.attribution),
                          third_sentence(ledger, explanation.verdicts.model)};
    return explanation;
}

ExplainedResult::ExplainedResult(const Result& result) : result_(&result) {
    for (const Point& point : result.points) explanations_.push_back(explain(result, point));
}

std::vector<std::string> ExplainedResult::impossible() const {
    std::vector<std::vector<std::string>> of_points;
    for (const Explanation& one : explanations_) of_points.push_back(one.impossible);
    return each_once(result_->points, of_points);
}

ExplainedResult::ExplainedResult(const Result& result, std::vector<Explanation> points)
    : result_(&result), explanations_(std::move(points)) {
    if (explanations_.size() != result.points.size())
        throw std::invalid_argument("a report needs an explanation a point");
}

}  // namespace kbench
