// The table of rules and thresholds, and a step's figures for it.
#include "analysis/explain/verdict_rules.h"

#include <algorithm>
#include <array>

#include "analysis/explain/program_findings.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// From this share of the time on the largest cause is worth being called the bottleneck.
constexpr double cause_share = 0.20;
/// So many passes through shared memory more or fewer decide nothing by themselves: replays of conflicts are in them.
constexpr double shared_count_tolerance = 0.10;
/// Two roof times are alike where the lesser is this part of the other.
constexpr double alike_roofs = 0.95;
/// So near, tensor cores and the shared memory that they read are one pipeline: an error of shared memory's count would
/// turn them around.
constexpr double alike_in_a_pipeline = 0.80;
/// Achieved, percent: so few warps are resident that their number can be the cause of waiting.
constexpr double low_occupancy_pct = 30;
/// From so many on, what else a step does is little beside them.
constexpr std::int64_t many_time_steps = 16;

bool always(const VerdictFacts&) { return true; }
Known exactly(const VerdictFacts&) { return Known::exactly; }
/// A kernel of one block an SM has as few as it was written for.
bool has_few_warps(const VerdictFacts& f) {
    return !f.one_block_an_sm && f.occupancy_pct && *f.occupancy_pct <= low_occupancy_pct;
}
double greater_roof(const VerdictFacts& f) { return std::max(f.compute_share, f.memory_share); }
double lesser_roof(const VerdictFacts& f) { return std::min(f.compute_share, f.memory_share); }
/// The unit's roof time is not clearly the longer.
bool is_not_clearly_longer(const VerdictFacts& f) { return f.memory_share >= alike_roofs * f.compute_share; }
/// A pipe or the schedulers are busier than any memory's roof time is long: they speak before it.
bool is_outranked(const VerdictFacts& f) {
    return f.units.pipe.share >= busy_unit_share && f.units.pipe.share > f.memory_share;
}
bool is_pipeline(const VerdictFacts& f) { return f.is_fed_by_shared && lesser_roof(f) >= bound_share; }
bool roofs_known(const VerdictFacts& f) { return f.compute_known && f.memory_known; }

/// What was not split is not more than the rest.
double split_or_rest(const VerdictFacts& f, double share) { return f.split ? share : f.rest_share; }
Known known_loss(const VerdictFacts& f) { return f.split ? Known::exactly : Known::at_most; }
bool units_known(const VerdictFacts& f) { return !f.has_units || f.units.known; }
Known known_unit(const VerdictFacts& f) { return units_known(f) ? Known::exactly : Known::no; }
/// Nothing is known of a CPU's units but that what roofs do not explain may be theirs.
Known known_compute_unit(const VerdictFacts& f) {
    return f.has_units || f.rest_share < rejecting_part * loss_share ? known_unit(f) : Known::no;
}
/// A level or unit without a roof or a count may be what warps wait for.
Known known_waiting(const VerdictFacts& f) {
    return f.split && !(roofs_known(f) && units_known(f)) ? Known::at_most : known_loss(f);
}
/// Warps wait more than SMs lack them.
bool is_waiting(const VerdictFacts& f) { return f.split && f.waiting_share > f.idle_share; }
double waiting(const VerdictFacts& f) { return is_vetoed(f) ? 0 : split_or_rest(f, f.waiting_share); }
bool is_chain(const VerdictFacts& f) { return f.time_steps >= many_time_steps; }
/// With a roof, a unit, the cycles or the kernels unknown, a roof time may be longer.
Known known_chain(const VerdictFacts& f) {
    if (!is_chain(f)) return Known::unasked;
    return roofs_known(f) && units_known(f) && f.split && f.launched && f.empty_known ? Known::exactly : Known::at_most;
}

constexpr std::array rules{
    Rule{
        {"gap", Bound::launch,
         "gaps, and starting and ending kernels, take {threshold} or more of the step and the gap before it, without what recording adds",
         0.50},
        [](const VerdictFacts& f) { return f.gap_share; },
        always,
        [](const VerdictFacts& f) { return f.launched ? Known::exactly : Known::no; },
        "gaps shorter than the kernels: fewer, longer kernels, or work launched ahead"},
    Rule{{"empty-kernel", Bound::launch, "as many empty kernels would take {threshold} or more of the step's time",
          0.60},
         [](const VerdictFacts& f) { return f.empty_share; },
         always,
         [](const VerdictFacts& f) { return f.launched && f.empty_known ? Known::exactly : Known::no; },
         "more work a kernel: a larger batch, or fusing with a neighbour"},
    Rule{{"dram-taken", Bound::bandwidth, "its time grows nearly in proportion as a thief takes DRAM's bandwidth away",
          1},
         [](const VerdictFacts& f) { return f.taken.dram == Influence::binds ? 1.0 : 0.0; },
         always,
         [](const VerdictFacts& f) { return f.taken.dram == Influence::unknown ? Known::unasked : Known::exactly; },
         "the same thief that does not slow it down"},
    Rule{{"l2-taken", Bound::bandwidth, "its time grows nearly in proportion as a thief takes L2's bandwidth away", 1},
         [](const VerdictFacts& f) { return f.taken.l2 == Influence::binds ? 1.0 : 0.0; },
         always,
         [](const VerdictFacts& f) { return f.taken.l2 == Influence::unknown ? Known::unasked : Known::exactly; },
         "the same thief that does not slow it down"},
    Rule{
        {"tensor-pipeline", Bound::compute,
         "the roof times of tensor cores and of shared memory, from which they are fed, are both {bound} or more of the time, the lesser {threshold} or more of the other",
         alike_in_a_pipeline},
        [](const VerdictFacts& f) { return is_pipeline(f) ? lesser_roof(f) / greater_roof(f) : 0; },
        is_pipeline,
        exactly,
        "fewer bytes through shared memory for the same products, which do not shorten it"},
    Rule{
        {"two-roofs", Bound::not_identifiable,
         "the roof times of a unit and of a level of memory are both {bound} or more of the time, the lesser {threshold} or more of the other",
         alike_roofs},
        [](const VerdictFacts& f) { return lesser_roof(f) / greater_roof(f); },
        [](const VerdictFacts& f) { return lesser_roof(f) >= bound_share && !is_outranked(f); },
        exactly,
        "roof times that differ by more than {rest}, at another batch or sequence length"},
    Rule{{"memory-roof", Bound::bandwidth,
          "the roof time of a level of memory is {threshold} or more of the time, and longer than any unit's",
          bound_share},
         [](const VerdictFacts& f) { return f.memory_share; },
         [](const VerdictFacts& f) { return f.memory_share > f.compute_share && !is_outranked(f); },
         [](const VerdictFacts& f) {
             if (!f.memory_known) return Known::no;
             return f.bytes_counted ? Known::exactly : Known::at_least;
         },
         "fewer bytes at that level in the same time, or a slower unit, whose roof time becomes the longer"},
    Rule{
        {"compute-roof", Bound::compute,
         "the roof time of a unit, at the run's clock, is {threshold} or more of the time; not where a memory's is {alike} of it or more and a unit is busier than that, in {busy} or more of the active cycles",
         bound_share},
        [](const VerdictFacts& f) { return f.compute_share; },
        [](const VerdictFacts& f) { return !(is_not_clearly_longer(f) && is_outranked(f)); },
        [](const VerdictFacts& f) { return f.compute_known ? Known::exactly : Known::no; },
        "fewer FLOPs in the same time, or a longer time for the same FLOPs at the same clock"},
    Rule{
        {"largest-cause", Bound::not_identifiable,
         "its times by size are known, and one cause has {threshold} or more of the time and more than any other within their intervals",
         cause_share},
        [](const VerdictFacts& f) { return f.cause_share; },
        [](const VerdictFacts& f) { return f.causes_known; },
        [](const VerdictFacts& f) { return f.causes_known ? Known::exactly : Known::unasked; },
        "that cause made smaller by a half, which does not shorten it"},
    Rule{
        {"idle-sms", Bound::occupancy,
         "SMs have no warp for {threshold} or more of the time, and warps wait for no more, or a unit is busy meanwhile",
         loss_share},
        [](const VerdictFacts& f) { return split_or_rest(f, f.idle_share); },
        [](const VerdictFacts& f) {
            return f.split && !f.one_block_an_sm && (f.units.busiest().share >= busy_unit_share || !is_waiting(f));
        },
        known_loss,
        "blocks enough to give every SM work until the end: other tiles, split work, a larger batch"},
    Rule{{"busy-memory", Bound::bandwidth,
          "shared memory or L2 is busy in {threshold} or more of the active cycles, and more than any pipe",
          busy_unit_share},
         [](const VerdictFacts& f) { return f.units.memory.share; },
         [](const VerdictFacts& f) { return f.units.memory.share > f.units.pipe.share; },
         exactly,  // where shared memory was not counted, the hypothesis is about the levels that have roofs
         "fewer passes or requests in the same time: wider accesses, no bank conflicts, reuse in registers"},
    Rule{{"busy-unit", Bound::compute,
          "a unit of the SM or its schedulers are busy in {threshold} or more of the active cycles", busy_unit_share},
         [](const VerdictFacts& f) { return f.units.pipe.share; },
         always,
         known_compute_unit,
         "fewer instructions of that kind for the same work that do not shorten it"},
    Rule{{"half-busy", Bound::not_identifiable,
          "warps wait for {loss} or more of the time, while a unit is busy in {threshold} or more of the active cycles",
          half_busy_unit_share},
         [](const VerdictFacts& f) { return f.units.busiest().share; },
         [](const VerdictFacts& f) { return is_waiting(f) && f.waiting_share >= loss_share; },
         exactly,
         "more warps that shorten it, or do not; or that unit faster"},
    Rule{
        {"time-steps", Bound::latency,
         "all roofs and starting kernels, one after another, leave {threshold} or more of the time of {chain} or more time steps, and no unit is busy in {half_busy} or more of the active cycles",
         0.50},
        [](const VerdictFacts& f) { return is_vetoed(f) ? 0 : f.above_roofs_share; },
        [](const VerdictFacts& f) {
            return known_chain(f) == Known::exactly && f.units.busiest().share < half_busy_unit_share;
        },
        known_chain,
        "a roof that was not measured and is reached; a larger batch that takes longer in proportion"},
    Rule{
        {"few-warps", Bound::occupancy,
         "SMs with warps wait for {threshold} or more of the time, no unit is busy, and the achieved occupancy is {few_warps} or less",
         loss_share},
        [](const VerdictFacts& f) { return !f.occupancy_pct || has_few_warps(f) ? waiting(f) : 0; },
        [](const VerdictFacts& f) { return roofs_known(f) && units_known(f) && has_few_warps(f) && is_waiting(f); },
        [](const VerdictFacts& f) { return f.occupancy_pct ? known_waiting(f) : Known::at_most; },
        "more resident warps (fewer registers, less shared memory) that do not shorten it"},
    Rule{{"waiting", Bound::latency,
          "SMs with warps wait for {threshold} or more of the time, no unit is busy, at more occupancy than that",
          loss_share},
         waiting,
         [](const VerdictFacts& f) { return roofs_known(f) && units_known(f) && f.occupancy_pct && is_waiting(f); },
         known_waiting,
         "a roof that was not measured and is reached; loads issued earlier or shorter chains that do not shorten it"},
    Rule{{"no-bottleneck", Bound::not_identifiable, "no rule above holds", 1},
         [](const VerdictFacts&) { return 1.0; },
         always,
         exactly,
         "counters and roofs, where there are none; otherwise a larger share of any one of the lines"},
};

constexpr Rule within_error{
    {"within-error", Bound::not_identifiable,
     "a rule above decides, and within the intervals of its figures another one would for another bound", 1},
    [](const VerdictFacts&) { return 1.0; },
    always,
    exactly,
    "figures with narrower intervals, or further from the threshold"};

constexpr std::array<VerdictRule, 5> many_rules{{
    {"model-gaps", Bound::launch,
     "gaps, and starting and ending kernels, take {threshold} or more of the end-to-end time; the model only", 0.30},
    {"model-cause", Bound::not_identifiable,
     "no bound has most of the steps' time, and one cause has {threshold} or more of the end-to-end time and more than any other within their intervals; the model only",
     cause_share},
    {"majority", Bound::not_identifiable,
     "steps of one bound take {threshold} or more of the steps' time, and more than those of any other", 0.50},
    {"no-majority", Bound::not_identifiable, "no rule above holds", 1},
    {"host-wait", Bound::launch,
     "a program's GPU waits for its host for {threshold} or more of an iteration without records; the model only, whatever the rules above say",
     host_wait_share},
}};

/// Whether kernels with as many blocks as are resident at once, one an SM, leave less of its time to others than what
/// these could lose.
bool has_one_block_an_sm(const StepResult& step) {
    double all_us = 0, persistent_us = 0;
    for (const KernelResult& kernel : step.kernels) {
        const bool is_persistent = kernel.blocks_per_sm == 1 && kernel.waves.value && *kernel.waves.value <= 1;
        all_us += kernel.time_us;
        persistent_us += is_persistent ? kernel.time_us : 0;
    }
    return all_us > 0 && persistent_us > (1 - loss_share) * all_us;
}

/// What is left of a step's recorded time where its records add to it; all of it where they would add more than that.
double without_records(const StepFacts& step, double recorded_us) {
    const double us = recorded_us - std::max(0.0, step.recording_us);
    return us > 0 ? us : recorded_us;
}

double above_roofs_share(const VerdictFacts& f, double roofs_share) {
    return std::max(0.0, 1 - roofs_share - f.empty_share);
}

}  // namespace

VerdictFacts facts_of(const StepGrounds& grounds) {
    const auto& [facts, roof_times, units, cycles, taken, cause] = grounds;
    VerdictFacts f;
    f.time_us = facts.time_us;
    if (facts.time_us <= 0) return f;
    const auto share = [&](double us) { return us / facts.time_us; };
    // A gap and its kernel's start and end are an empty kernel's latency together, which was timed without records.
    // What these add is a part of the recorded kernel and gap alone.
    const double gaps_us = facts.gaps_us() + cycles.starts_us;
    if (gaps_us > 0) f.gap_share = std::min(1.0, gaps_us / without_records(facts, facts.kernels_us + facts.gaps_us()));
    f.launched = !facts.step->kernels.empty();
    f.empty_known = facts.empty_kernels_us.has_value();
    f.empty_share = share(facts.empty_kernels_us.value_or(0));

    // Units that a cost model knows nothing of: shared memory is a memory, the others are units that compute.
    const RoofTime *unit = nullptr, *memory = nullptr;
    for (const auto* list : {&roof_times.work, &roof_times.units})
        for (const RoofTime& roof_time : *list) {
            if (taken.exclude(roof_time)) continue;
            const RoofTime*& longest = roof_time.is_memory() ? memory : unit;
            if (longest == nullptr || roof_time.run_us.value > longest->run_us.value) longest = &roof_time;
        }
    if (unit != nullptr) f.compute_share = std::max(0.0, share(unit->run_us.value));
    if (memory != nullptr) f.memory_share = std::max(0.0, share(memory->run_us.value));
    f.is_fed_by_shared = unit != nullptr && memory != nullptr && memory->unit == unit::shared_memory &&
                         unit->roof.ceiling.ends_with("_tensor");
    if (const RoofTime* dram = roof_times.at(Level::dram)) f.bytes_counted = dram->origin == Origin::measured;
    f.compute_known = roof_times.compute_known;
    f.memory_known = roof_times.memory_known;
    f.split = cycles.unavailable.empty();
    if (f.split) {
        const double kernels = share(cycles.time_us);
        f.idle_share = std::max(0.0, cycles.no_warp * kernels - share(cycles.starts_us));
        f.waiting_share = cycles.not_issuing * kernels;
    } else {
        const double longest_us = roof_times.work.empty() ? 0 : roof_times.work.front().run_us.value;
        f.rest_share = share(std::max(0.0, facts.kernels_us - longest_us));
    }
    f.units = units;
    f.has_units = facts.on_gpu;
    f.occupancy_pct = facts.counters.achieved_occupancy;
    f.taken = taken;
    f.one_block_an_sm = has_one_block_an_sm(*facts.step);
    f.causes_known = cause.has_value();
    if (cause && cause->is_clear) {
        f.cause_share = share(cause->us.value);
        f.cause_bound = cause->bound;
    }
    f.time_steps = facts.chained_steps();
    f.above_roofs_share = above_roofs_share(f, share(roof_times.together().value));
    return f;
}

std::vector<VerdictFacts> facts_within_errors(const StepGrounds& step, const VerdictFacts& facts) {
    std::vector<VerdictFacts> variants;
    const double time_us = step.facts.time_us;
    if (time_us <= 0) return variants;
    Interval compute, memory;
    const double shortest_us = without_records(step.facts, time_us);
    for (const auto* list : {&step.roof_times.work, &step.roof_times.units})
        for (const RoofTime& roof_time : *list) {
            if (step.taken.exclude(roof_time)) continue;
            Interval& longest = roof_time.is_memory() ? memory : compute;
            const double more = roof_time.unit == unit::shared_memory ? shared_count_tolerance - count_tolerance : 0;
            longest = {std::max(longest.value, roof_time.run_us.value / time_us),
                       std::max(longest.low, roof_time.run_us.low * (1 - more) / time_us),
                       std::max(longest.high, roof_time.run_us.high * (1 + more) / shortest_us)};
        }
    for (const double c : {compute.low, compute.high})
        for (const double m : {memory.low, memory.high}) {
            VerdictFacts& f = variants.emplace_back(facts);
            f.compute_share = c;
            f.memory_share = m;
        }
    const Interval together = step.roof_times.together();
    for (const double share : {together.low / time_us, together.high / shortest_us})
        variants.emplace_back(facts).above_roofs_share = above_roofs_share(facts, share);
    for (const double sign : {-1.0, 1.0}) {
        VerdictFacts& units = variants.emplace_back(facts);
        units.units.pipe.share *= 1 + sign * count_tolerance;
        units.units.memory.share *=
            1 + sign * (units.units.memory.name == unit::shared_memory ? shared_count_tolerance : count_tolerance);
        if (!facts.split) continue;
        // A clock that was higher than the mean makes the same cycles a shorter time: more of it is without a warp.
        const double active = (1 - step.cycles.no_warp) * step.cycles.time_us / time_us;
        VerdictFacts& cycles = variants.emplace_back(facts);
        cycles.idle_share = std::max(0.0, facts.idle_share + sign * step.facts.clock_error * active);
        cycles.waiting_share = facts.waiting_share * (1 - sign * step.facts.clock_error);
    }
    return variants;
}

std::string with_thresholds(std::string_view pattern, double threshold) {
    const std::pair<std::string_view, std::string> figures[] = {
        {"{threshold}", percent(threshold)},
        {"{rest}", percent(1 - threshold)},
        {"{bound}", percent(bound_share)},
        {"{loss}", percent(loss_share)},
        {"{half_busy}", percent(half_busy_unit_share)},
        {"{alike}", percent(alike_roofs)},
        {"{busy}", percent(busy_unit_share)},
        {"{few_warps}", percent(low_occupancy_pct / 100)},
        {"{chain}", std::to_string(many_time_steps)},
    };
    std::string text(pattern);
    for (const auto& [name, figure] : figures)
        for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), figure);
    return text;
}

std::string VerdictRule::text() const { return with_thresholds(what, threshold); }

const Rule& error_rule() { return within_error; }

bool is_vetoed(const VerdictFacts& f) {
    return std::max({f.units.busiest().share, f.memory_share, f.compute_share}) >= busy_unit_share;
}

Bound bound_of(const Rule& rule, const VerdictFacts& f) {
    return &rule == &cause_rule() ? f.cause_bound : rule.shown.bound;
}

const Rule& cause_rule() {
    static const Rule& found = *std::ranges::find(rules, "largest-cause", [](const Rule& r) { return r.shown.id; });
    return found;
}

const VerdictRule& rule_called(std::string_view id) {
    return std::ranges::find(rules, id, [](const Rule& rule) { return rule.shown.id; })->shown;
}

std::span<const Rule> step_rules() { return rules; }
const Rule& deciding_rule(const VerdictFacts& f) {
    const auto holds = [&](const Rule& rule) { return rule.applies(f) && rule.figure(f) >= rule.shown.threshold; };
    return *std::ranges::find_if(rules, holds);
}

std::span<const VerdictRule> model_rules() { return many_rules; }

std::span<const VerdictRule> verdict_rules() {
    static constexpr auto all = [] {
        std::array<VerdictRule, rules.size() + 1 + many_rules.size()> table{};
        for (std::size_t i = 0; i < rules.size(); ++i) table[i] = rules[i].shown;
        table[rules.size()] = within_error.shown;
        for (std::size_t i = 0; i < many_rules.size(); ++i) table[rules.size() + 1 + i] = many_rules[i];
        return table;
    }();
    return all;
}

}  // namespace kbench
