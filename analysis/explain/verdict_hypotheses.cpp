// Every bound put to the test on one step's figures; see verdict.h, Hypothesis.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/explain/verdict_rules.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// By how much a figure falls short may be unknown: the word that says so, and the most that it can be.
struct Reach {
    std::string_view word;
    double most;
};
Reach reach_of(const Rule& rule, const VerdictFacts& f) {
    const double figure = rule.figure(f);
    switch (rule.known(f)) {
        case Known::exactly: return {"", figure};
        case Known::at_most: return {"at most ", figure};
        case Known::at_least: return {"at least ", figure * uncounted_bytes_factor};
        case Known::no:
        case Known::unasked: break;
    }
    return {"not measured", std::numeric_limits<double>::infinity()};
}

std::string why(const Rule& rule, const VerdictFacts& f) {
    const bool is_of_waiting =
        rule.shown.id == "few-warps" || rule.shown.id == "waiting" || rule.shown.id == "time-steps";
    if (is_of_waiting && is_vetoed(f))
        return f.units.busiest().share >= busy_unit_share
                   ? fmt::format("{}: {} busy in {} of the active cycles", rule.shown.id, f.units.busiest().name,
                                 percent(f.units.busiest().share))
                   : fmt::format("{}: a roof time is {} of the time", rule.shown.id,
                                 percent(std::max(f.memory_share, f.compute_share)));
    if (rule.known(f) == Known::no) return fmt::format("{}: not measured", rule.shown.id);
    return fmt::format("{}: {}{} where {} is needed", rule.shown.id, reach_of(rule, f).word, percent(rule.figure(f)),
                       percent(rule.shown.threshold));
}

}  // namespace

std::vector<Hypothesis> test_hypotheses(const VerdictFacts& f, const Rule& decided) {
    std::vector<Hypothesis> hypotheses;
    for (const Bound bound : tested_bounds) {
        Hypothesis& hypothesis = hypotheses.emplace_back(Hypothesis{bound, Finding::not_identifiable, ""});
        double nearest = -1;
        for (const Rule& rule : step_rules()) {
            if (rule.shown.bound != bound || rule.known(f) == Known::unasked) continue;
            const double part = reach_of(rule, f).most / rule.shown.threshold;
            if (part <= nearest) continue;
            nearest = part;
            hypothesis.why = why(rule, f);
        }
        if (bound == bound_of(decided, f)) {
            hypothesis.finding = Finding::confirmed;
            hypothesis.why = fmt::format("{}: {} where {} is needed", decided.shown.id, percent(decided.figure(f)),
                                         percent(decided.shown.threshold));
        } else if (nearest < rejecting_part) {
            hypothesis.finding = Finding::rejected;
        }
    }
    return hypotheses;
}

}  // namespace kbench
