// One table of rules; the first whose score reaches its threshold decides.
#include "analysis/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/breakdown.h"
#include "analysis/executed.h"
#include "analysis/write/format.h"

namespace kbench {
namespace {

/// What the rules look at: shares of the step's own time, or, for a model, of its steps' time and gaps.
struct Facts {
    double time_us = 0;
    double gap_share = 0;      ///< gap before the step over gap and step
    double empty_share = 0;    ///< an empty kernel's time over the step's
    double compute_share = 0;  ///< unit's demand at the run's clock, with executed extra work
    double memory_share = 0;   ///< the longest demand of a memory level
    double idle_share = 0;     ///< SMs without a warp
    double waiting_share = 0;  ///< SMs with warps, none issuing, no roof reached
    double issue_share = 0;    ///< issue slots beyond the demand's own
    std::optional<double> occupancy_pct;
    bool demanded = false;  ///< there are roofs
    bool counted = false;   ///< idle, waiting and issuing were split by counters
};

/// Warps resident are few enough for their number to be the cause of waiting.
constexpr double low_occupancy_pct = 30;

double two_roofs(const Facts& f);
double compute(const Facts& f) { return f.compute_share; }
double memory(const Facts& f) { return f.memory_share; }
double gap(const Facts& f) { return f.gap_share; }
double emptiness(const Facts& f) { return f.empty_share; }
double idle(const Facts& f) { return f.idle_share; }
double waiting(const Facts& f) { return f.waiting_share; }
double issue(const Facts& f) { return f.issue_share; }
double waiting_with_few_warps(const Facts& f) {
    return f.occupancy_pct && *f.occupancy_pct <= low_occupancy_pct ? f.waiting_share : 0;
}
double always(const Facts&) { return 1; }

struct Rule {
    VerdictRule shown;
    double threshold;
    double (*score)(const Facts&);
    std::string_view overturned_by;
};

/// In order. 60 % of a roof is where Nsight Compute, too, begins to call a kernel bound by it.
constexpr double bound_share = 0.60;
constexpr std::array rules{
    Rule{{"gap", Bound::launch,
          "starting and ending kernels, and the gap before them, take 50 % or more of gap and step"},
         0.50,
         gap,
         "a gap shorter than the step: fewer, longer kernels, or work launched ahead"},
    Rule{{"empty-kernel", Bound::launch, "an empty kernel takes 60 % or more of the step's time"},
         0.60,
         emptiness,
         "more work a kernel: a larger batch, or fusing with a neighbour"},
    Rule{{"two-roofs", Bound::not_identifiable,
          "a unit and a level of memory both demand 60 % or more, the lesser at least 95 % of the other"},
         0.95,
         two_roofs,
         "demands that differ by more than 5 %, at another batch or sequence length"},
    Rule{
        {"memory-roof", Bound::bandwidth, "a level of memory demands 60 % or more of the time, and more than the unit"},
        bound_share,
        [](const Facts& f) { return f.memory_share > f.compute_share ? memory(f) : 0; },
        "fewer bytes at that level in the same time, or a faster unit becoming the longer demand"},
    Rule{{"compute-roof", Bound::compute, "the unit demands 60 % or more of the time at the run's clock"},
         bound_share,
         compute,
         "a demand of the unit under 60 % of the time: a longer time at the same work and clock"},
    Rule{{"idle-sms", Bound::occupancy, "SMs have no warp for 30 % or more of the time"},
         0.30,
         idle,
         "blocks enough to give every SM work until the end: other tiles, split work, a larger batch"},
    Rule{{"few-warps", Bound::occupancy,
          "SMs with warps wait for 30 % or more of the time, at an achieved occupancy of 30 % or less"},
         0.30,
         waiting_with_few_warps,
         "more resident warps (fewer registers, less shared memory) at the same speed"},
    Rule{{"issue-slots", Bound::compute, "instructions beyond the roof's work take 30 % or more of the time"},
         0.30,
         issue,
         "fewer instructions for the same work: wider loads, less address arithmetic and conversion"},
    Rule{{"waiting", Bound::latency, "SMs with warps wait for 30 % or more of the time, at more occupancy than that"},
         0.30,
         waiting,
         "loads issued earlier, shorter chains of dependence, or a roof reached"},
    Rule{{"nothing-binds", Bound::not_identifiable, "no rule above holds"},
         1,
         always,
         "counters, where there are none; otherwise a larger share of any one of the lines"},
};

double two_roofs(const Facts& f) {
    const double lesser = std::min(f.compute_share, f.memory_share),
                 greater = std::max(f.compute_share, f.memory_share);
    return lesser >= bound_share ? lesser / greater : 0;
}

/// Share of the steps' time from which on a kind of bound speaks for the model, and share of the end-to-end time from
/// which on gaps do.
constexpr double majority = 0.50, gaps_majority = 0.30;

constexpr std::array<VerdictRule, 3> model_rules{{
    {"model-gaps", Bound::launch, "gaps between kernels take 30 % or more of the end-to-end time"},
    {"majority", Bound::not_identifiable, "steps of one bound take 50 % or more of the steps' time"},
    {"no-majority", Bound::not_identifiable, "no bound has half of the steps' time"},
}};

constexpr auto all_rules = [] {
    std::array<VerdictRule, rules.size() + model_rules.size()> all{};
    for (std::size_t i = 0; i < rules.size(); ++i) all[i] = rules[i].shown;
    for (std::size_t i = 0; i < model_rules.size(); ++i) all[rules.size() + i] = model_rules[i];
    return all;
}();

Facts facts_of(const StepLedger& entry, double graph_node_us) {
    Facts f;
    f.time_us = entry.time_us;
    if (entry.time_us <= 0) return f;
    const Lines& lines = entry.lines;
    const double gap_us = lines[Line::launch] + lines[Line::dependency];
    f.gap_share = gap_us > 0 ? gap_us / lines.total_us() : 0;
    f.empty_share = graph_node_us / entry.time_us;
    f.demanded = !entry.demands.empty();
    const bool compute_binds = entry.binding() != nullptr && !entry.binding()->level;
    for (const Demand& demand : entry.demands) {
        double& share = demand.level ? f.memory_share : f.compute_share;
        share = std::max(share, demand.us / entry.time_us);
    }
    if (compute_binds)
        f.compute_share = (lines[Line::compute] + lines[Line::clock] + lines[Line::extra_work]) / entry.time_us;
    f.idle_share = lines[Line::idle_sms] / entry.time_us;
    f.waiting_share = lines[Line::waiting] / entry.time_us;
    f.issue_share = lines[Line::instructions] / entry.time_us;
    f.occupancy_pct = counter(*entry.step, "achieved_occupancy");
    f.counted = f.occupancy_pct.has_value() && lines[Line::rest] <= 0;
    return f;
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string level_of(const StepLedger& entry, const Rule& rule) {
    if (rule.shown.id == "issue-slots") return "issue slots";
    for (const Demand& demand : entry.demands) {
        if (rule.shown.id == "memory-roof" && demand.level) return std::string(name(*demand.level));
        if (rule.shown.id == "compute-roof" && !demand.level) return demand.roof.ceiling;
    }
    return "";
}

std::string demand_evidence(const Demand& demand, double time_us) {
    const std::string work = demand.level ? format_bytes(demand.work) : format_flop(demand.work);
    return fmt::format("{} {} at the {} roof of {}: {} of the time ({}; roof {})", work,
                       demand.level ? "moved" : "computed", demand.roof.ceiling,
                       demand.level ? format_bytes_per_s(demand.roof.per_s) : format_flop_per_s(demand.roof.per_s),
                       percent(demand.us / time_us), name(demand.origin), name(demand.roof.origin));
}

std::vector<std::string> evidence_of(const StepLedger& entry, const Facts& f) {
    std::vector<std::string> evidence;
    for (const Demand& demand : entry.demands) evidence.push_back(demand_evidence(demand, entry.time_us));
    const auto add_share = [&](double share, std::string_view what) {
        if (share >= 0.01) evidence.push_back(fmt::format("{} {}", percent(share), what));
    };
    add_share(entry.lines[Line::clock] / entry.time_us, "of the time for a clock below the roof's (measured)");
    add_share(entry.lines[Line::extra_work] / entry.time_us, "of the time for work beyond the model's (measured)");
    add_share(f.idle_share, "of the time SMs had no warp (measured)");
    add_share(f.issue_share, "of the time for instructions beyond the roof's work (derived from IPC)");
    add_share(f.waiting_share, "of the time SMs had warps that waited (derived: what is left)");
    add_share(f.gap_share, "of gap and step is starting and ending kernels (measured)");
    if (f.occupancy_pct) evidence.push_back(fmt::format("achieved occupancy {:.0f} % (measured)", *f.occupancy_pct));
    if (!f.demanded) evidence.emplace_back("no roofs to set it against");
    return evidence;
}

/// Whether the figure of a rule could be had at all.
bool known(const Rule& rule, const Facts& f, bool launched) {
    switch (rule.shown.bound) {
        case Bound::compute: return rule.shown.id == "issue-slots" ? f.counted : f.demanded;
        case Bound::bandwidth: return f.demanded;
        case Bound::launch: return launched;
        case Bound::occupancy:
        case Bound::latency: return f.counted;
        case Bound::not_identifiable: return false;
    }
    return false;
}

/// A figure under this part of its rule's threshold rejects the hypothesis.
constexpr double rejecting_part = 0.5;

constexpr Bound bounds[] = {Bound::bandwidth, Bound::compute, Bound::latency, Bound::launch, Bound::occupancy};

/// Of several rules of one bound the one that came nearest to its threshold speaks.
std::vector<Hypothesis> test_hypotheses(const Facts& f, bool launched, Bound decided) {
    std::vector<Hypothesis> hypotheses;
    for (const Bound bound : bounds) {
        Hypothesis& hypothesis = hypotheses.emplace_back(Hypothesis{bound, Finding::not_identifiable, "not measured"});
        double nearest = -1;
        bool all_known = true;
        for (const Rule& rule : rules) {
            if (rule.shown.bound != bound) continue;
            if (!known(rule, f, launched)) {
                all_known = all_known && rule.shown.id == "issue-slots";
                continue;
            }
            const double part = rule.score(f) / rule.threshold;
            if (part <= nearest) continue;
            nearest = part;
            hypothesis.why = fmt::format("{}: {} where {} is needed", rule.shown.id, percent(rule.score(f)),
                                         percent(rule.threshold));
        }
        if (bound == decided)
            hypothesis.finding = Finding::confirmed;
        else if (nearest >= 0 && nearest < rejecting_part && all_known)
            hypothesis.finding = Finding::rejected;
    }
    return hypotheses;
}

Verdict judge_step(const StepLedger& entry, double graph_node_us) {
    const Facts f = facts_of(entry, graph_node_us);
    Verdict verdict;
    verdict.subject = fmt::format("{} {}", entry.step->index, entry.step->layer);
    if (f.time_us <= 0) {
        verdict.rule = "nothing-binds";
        verdict.evidence = {"the step was not timed"};
        verdict.overturned_by = rules.back().overturned_by;
        return verdict;
    }
    for (const Rule& rule : rules) {
        const double score = rule.score(f);
        if (score < rule.threshold) continue;
        verdict.bound = rule.shown.bound;
        verdict.rule = rule.shown.id;
        verdict.level = level_of(entry, rule);
        verdict.margin = score / rule.threshold - 1;
        verdict.overturned_by = rule.overturned_by;
        break;
    }
    verdict.evidence = evidence_of(entry, f);
    verdict.hypotheses = test_hypotheses(f, !entry.step->kernels.empty(), verdict.bound);
    return verdict;
}

/// Time of steps by what binds them and at which level.
struct Tally {
    std::map<std::pair<Bound, std::string>, double> us;
    std::map<Bound, double> rejected_us;  ///< time of steps that reject a bound
    double total_us = 0;

    void add(const Verdict& verdict, double time_us) {
        us[{verdict.bound, verdict.level}] += time_us;
        total_us += time_us;
        for (const Hypothesis& hypothesis : verdict.hypotheses)
            if (hypothesis.finding == Finding::rejected) rejected_us[hypothesis.bound] += time_us;
    }

    std::map<Bound, double> by_bound() const {
        std::map<Bound, double> sums;
        for (const auto& [key, time] : us) sums[key.first] += time;
        return sums;
    }
};

/// Steps that reject a bound must have this share of the time for the whole to reject it.
constexpr double rejecting_majority = 0.80;

void test_hypotheses(Verdict& verdict, const Tally& tally) {
    for (const Bound bound : bounds) {
        const auto rejected = tally.rejected_us.find(bound);
        const double share = rejected == tally.rejected_us.end() ? 0 : rejected->second / tally.total_us;
        const Finding finding = bound == verdict.bound        ? Finding::confirmed
                                : share >= rejecting_majority ? Finding::rejected
                                                              : Finding::not_identifiable;
        verdict.hypotheses.push_back(
            {bound, finding, fmt::format("steps with {} of the time reject it", percent(share))});
    }
}

/// The bound of most of the time.
Verdict judge_many(const std::string& subject, const Tally& tally) {
    Verdict verdict;
    verdict.subject = subject;
    verdict.rule = "no-majority";
    verdict.overturned_by = "one bound on more than half of the time";
    if (tally.total_us <= 0) {
        verdict.evidence = {"no step was timed"};
        return verdict;
    }
    std::vector<std::pair<double, std::pair<Bound, std::string>>> parts;
    for (const auto& [key, us] : tally.us) parts.emplace_back(us / tally.total_us, key);
    std::ranges::sort(parts, std::greater{});
    for (const auto& [share, key] : parts)
        verdict.evidence.push_back(fmt::format("{} of the steps' time is {}{}", percent(share), name(key.first),
                                               key.second.empty() ? "" : fmt::format(" ({})", key.second)));
    for (const auto& [bound, us] : tally.by_bound()) {
        const double share = us / tally.total_us;
        if (share < majority) continue;
        verdict.bound = bound;
        verdict.rule = "majority";
        verdict.margin = share / majority - 1;
        for (const auto& [part, key] : parts)
            if (key.first == bound && verdict.level.empty()) verdict.level = key.second;
        verdict.overturned_by =
            fmt::format("steps with {} of the time changing their verdict", percent(share - majority));
        break;
    }
    test_hypotheses(verdict, tally);
    return verdict;
}

}  // namespace

std::span<const VerdictRule> verdict_rules() { return all_rules; }

Verdicts judge(const Ledger& ledger, const Roofs& roofs) {
    Verdicts verdicts;
    Tally model;
    std::vector<std::pair<std::string, Tally>> layers;
    const double graph_node_us = roofs.latency_us("graph_node").value_or(0);
    for (const StepLedger& entry : ledger.steps) {
        const Verdict& verdict = verdicts.steps.emplace_back(judge_step(entry, graph_node_us));
        const std::string group = layer_group(entry.step->layer);
        auto layer = std::ranges::find(layers, group, &std::pair<std::string, Tally>::first);
        if (layer == layers.end()) layer = layers.insert(layers.end(), {group, {}});
        for (Tally* tally : {&model, &layer->second}) tally->add(verdict, entry.time_us);
    }
    for (const auto& [group, tally] : layers) verdicts.layers.push_back(judge_many(group, tally));
    verdicts.model = judge_many("model", model);
    const double gaps_us = ledger.total[Line::launch] + ledger.total[Line::dependency];
    const double gaps = ledger.end_to_end_us > 0 ? gaps_us / ledger.end_to_end_us : 0;
    if (gaps >= gaps_majority) {
        verdicts.model.bound = Bound::launch;
        verdicts.model.rule = "model-gaps";
        verdicts.model.level.clear();
        verdicts.model.margin = gaps / gaps_majority - 1;
        verdicts.model.overturned_by = "gaps under 30 % of the time: longer kernels, or launches ahead of the device";
        for (Hypothesis& hypothesis : verdicts.model.hypotheses)
            if (hypothesis.bound == Bound::launch)
                hypothesis.finding = Finding::confirmed;
            else if (hypothesis.finding == Finding::confirmed)
                hypothesis.finding = Finding::not_identifiable;
        verdicts.model.evidence.insert(verdicts.model.evidence.begin(),
                                       fmt::format("gaps take {} of the end-to-end time (measured)", percent(gaps)));
    }
    return verdicts;
}

}  // namespace kbench
