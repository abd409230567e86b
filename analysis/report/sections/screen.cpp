// What a terminal shows of a point: one screen with the answer. The summary (--verbose) and the report have the rest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "analysis/explain/in_short.h"
#include "analysis/explain/step_sums.h"
#include "analysis/machine/cpu_share.h"
#include "analysis/machine/machine.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/frames.h"
#include "analysis/result/point_name.h"
#include "analysis/table/table_query.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::size_t screen_layers = 4, most_changes = 3, bar_width = 20;
constexpr double clock_tolerance = 0.01;  ///< a clock that is read in the graph may be above the highest by this part
constexpr const char* changes_heading = "What would save most on this machine, each at most:";
constexpr double disturbed = 0.05;          ///< a roof was lower by more than this part while it was measured
constexpr double said_above = 0.02;         ///< steps add up to more than the time by this part of it
constexpr double noteworthy_share = 0.01;   ///< a row of its own has this part of the time
constexpr double noteworthy_change = 0.02;  ///< and a change gives this part back

double median_us(const Point& point) { return point.end_to_end->latency.summary_ms.median * 1e3; }

/// A figure, and what is said of it: its interval, or what it is a share of.
struct Told {
    std::string figure, more;
};

Told told_latency(const Point& point) {
    const EndToEnd& times = *point.end_to_end;
    const Summary& ms = times.latency.summary_ms;
    const TimeUnit unit = time_unit(ms.median);
    const int decimals = decimals_for(ms.median * unit.per_ms, time_digits);
    const auto show = [&](double value) { return fixed(value * unit.per_ms, decimals); };
    std::vector<std::string> more;
    if (ms.has_interval()) more.push_back(fmt::format("95 % CI [{}, {}]", show(ms.ci_low), show(ms.ci_high)));
    if (!times.converged) more.push_back("not converged");
    return {fmt::format("{} {}{}", show(ms.median), unit.name, timed_words(point).time_is), joined(more, ", ")};
}

std::string latency_line(const Point& point) {
    const Told latency = told_latency(point);
    return fmt::format("{} median{}{}", latency.figure, latency.more.empty() ? "" : ", ", latency.more);
}

/// What comes of it in a second, and what it costs in energy.
std::string rates_line(const Point& point) {
    const EndToEnd& times = *point.end_to_end;
    std::vector<std::string> rates;
    if (times.sequences_per_s) rates.push_back(significant(*times.sequences_per_s) + " sequences/s");
    if (times.tokens_per_s) rates.push_back(significant(*times.tokens_per_s) + " tokens/s");
    if (const std::optional<Frames> frames = frames_of(point); frames && median_us(point) > 0)
        rates.push_back(significant(static_cast<double>(point.batch()) / median_us(point) * 1e6) + " utterances/s");
    const std::vector<Fact> energy = energy_facts(point);
    if (!energy.empty() && !energy.front().value.empty())
        rates.push_back(fmt::format("{} {}", energy.front().value, energy.front().label.substr(sizeof("energy"))));
    return joined(rates, ", ");
}

/// A rate and its shares of a roof: as measured, as it was during the run, and as its maker states.
struct RateAtRoof {
    Told told;
    double share = 0;  ///< the first of these that is known; 0: none is
};

template <class RoofOf>
RateAtRoof at_roof(const SectionContext& context, double per_s, std::string figure, std::string_view measured_roof,
                   const RoofOf& roof_of) {
    const Point& point = context.point();
    if (!(per_s > 0)) return {};
    RateAtRoof made{{std::move(figure), ""}};
    std::vector<std::string> shares;
    const auto add = [&](const Roof& roof, std::string_view what) {
        shares.push_back(fmt::format("{} of {}", percent(per_s / roof.per_s), what));
        if (made.share == 0) made.share = per_s / roof.per_s;
    };
    // The machine's own, whatever other programs left of it meanwhile.
    const std::optional<Roof> measured = roof_of(Roofs(context.result(), point.backend()));
    if (measured && measured->origin == Origin::measured) add(*measured, measured_roof);
    // Roofs that were read between the samples: others used the host, or it was slower.
    const std::optional<Roof> left = roof_of(context.explanation().facts.roofs);
    if (measured && left && context.explanation().is_by_roofs_between_samples &&
        left->per_s < (1 - disturbed) * measured->per_s)
        add(*left, "what it was during the run");
    const Environment& environment = context.result().environment;
    if (const MachineFile* machine = machine_of(environment, point.backend()))
        if (const std::optional<Roof> stated = roof_of(Roofs(scaled_to(*machine, environment))))
            add(*stated, "the datasheet's");
    made.told.more = joined(shares, ", ");
    return made;
}

/// Useful FLOP/s over the fastest unit for that precision.
RateAtRoof share_of_peak(const SectionContext& context) {
    const Point& point = context.point();
    const double flop_per_s = point.cost.flops / median_us(point) * 1e6;
    return at_roof(context, flop_per_s, format_flop_per_s(flop_per_s), "the measured peak",
                   [&](const Roofs& roofs) { return roofs.matrix(point.precision()); });
}

/// Compulsory bytes over the memory's bandwidth.
RateAtRoof share_of_bandwidth(const SectionContext& context) {
    const Point& point = context.point();
    const double bytes = point.compulsory_bytes.value_or(0), bytes_per_s = bytes / median_us(point) * 1e6;
    return at_roof(
        context, bytes_per_s,
        fmt::format("{} that no program can spare, {}", format_bytes(bytes), format_bytes_per_s(bytes_per_s)),
        "the measured bandwidth", [](const Roofs& roofs) { return roofs.bandwidth(Level::dram); });
}

/// The SMs' own clock, the mean over the steps' time; NVML's where it was not read.
std::optional<double> clock_mhz(const Point& point) {
    const std::vector<Interval> clocks = graph_clocks(point);
    double us = 0, cycles = 0;
    for (std::size_t i = 0; i < clocks.size(); ++i) {
        const double step_us = point.steps[i].device_us().value_or(0);
        if (clocks[i].value <= 0) continue;
        us += step_us;
        cycles += step_us * clocks[i].value;
    }
    return us > 0 ? std::optional(cycles / us) : point.conditions.sm_clock_mhz.value;
}

/// Clock, power and what held the device back.
std::string machine_text(const SectionContext& context) {
    const Point& point = context.point();
    const Conditions& conditions = point.conditions;
    const std::optional<GpuInfo>& gpu = context.result().environment.gpu;
    const bool on_gpu = point.backend() == "cuda" && gpu;
    const auto of = [](double value, const std::optional<double>& most, std::string_view unit) {
        return most ? fmt::format("{} of {} {}", significant(value), significant(*most), unit)
                    : fmt::format("{} {}", significant(value), unit);
    };
    std::vector<std::string> parts;
    if (std::optional<double> mhz = clock_mhz(point)) {
        const std::optional<double> most = on_gpu ? gpu->max_sm_clock_mhz.value : std::nullopt;
        if (most && *mhz > *most && *mhz < (1 + clock_tolerance) * *most) mhz = most;
        parts.push_back((on_gpu ? "SM clock " : "clock ") + of(*mhz, most, "MHz"));
    }
    if (conditions.power_w.value)
        parts.push_back(of(*conditions.power_w.value, on_gpu ? gpu->power_limit_w.value : std::nullopt, "W"));
    if (on_gpu && is_at_power_limit(conditions)) {
        parts.emplace_back("at the power limit");
    } else {
        const std::string throttling = throttling_text(conditions);
        parts.push_back("throttling: " + throttling.substr(0, throttling.find(" (")));
    }
    if (conditions.cpu_share) {
        const std::string lost = cpu_share_lost(*conditions.cpu_share);
        parts.push_back("CPU time lost: " + (lost.empty() ? "none seen" : lost));
    }
    return joined(parts, ", ");
}

Facts figures_of(const SectionContext& context) {
    const Point& point = context.point();
    Facts facts;
    const auto add = [&facts](std::string_view label, std::string value) {
        if (!value.empty()) facts.facts.push_back({std::string(label), std::move(value), ""});
    };
    add("latency", latency_line(point));
    add("throughput", rates_line(point));
    const RateAtRoof compute = share_of_peak(context), memory = share_of_bandwidth(context);
    const Told& peak = compute.told;
    const char* some = context.explanation().facts.unknown_work_us > 0 ? " by ops whose work is known" : "";
    add("compute", peak.more.empty() ? peak.figure + (peak.figure.empty() ? "" : some)
                                     : fmt::format("{}{}: {}", peak.figure, some, peak.more));
    if (memory.share > compute.share) add("memory", fmt::format("{}: {}", memory.told.figure, memory.told.more));
    if (was_watched(point)) add("machine", machine_text(context));
    if (!point.program) add("verified", verified_text(point.verification, context.depth));
    return facts;
}

/// Whether it is bandwidth, what it is, and what to measure where that cannot be told.
Facts answer_facts(const Explanation& explanation) {
    const BandwidthBound memory = bandwidth_bound(explanation);
    Facts facts;
    facts.facts.push_back({"Bandwidth-bound?", fmt::format("{}: {}", shouted(memory.answer), memory.why), ""});
    if (const std::string binding = binding_text(explanation); !binding.empty())
        facts.facts.push_back({"What binds it", binding, ""});
    const bool is_decided = explanation.verdicts.model.bound != Bound::not_identifiable;
    if (const std::string next = next_experiment(explanation); !next.empty() && !is_decided)
        facts.facts.push_back({"Measure next", next, ""});
    if (is_decided && explanation.breakdown.roofs_unavailable.empty())
        facts.facts.push_back({"Other hardware?", what_would_help(explanation), ""});
    return facts;
}

/// What interventions contradict, and what was found in a program.
void add_found(Section& section, const Explanation& explanation) {
    for (const std::string& sentence : explanation.contradictions) section.add(Paragraph{sentence, Tone::lead});
    if (!explanation.program.host_wait.empty()) section.add(Paragraph{explanation.program.host_wait, Tone::lead});
    for (const std::string& sentence : explanation.program.sentences) section.add(Paragraph{sentence, Tone::lead});
}

/// What binds it, or why that is not said.
void add_answer_to(Section& section, const Explanation& explanation) {
    if (!explanation.concludes() || !explanation.breakdown.unavailable.empty()) {
        for (const std::string& sentence : explanation.answer) section.add(Paragraph{sentence, Tone::lead});
        return;
    }
    add_found(section, explanation);
    section.add(answer_facts(explanation));
}

std::string bar(double share) {
    return std::string(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * bar_width + 0.5), '#');
}

/// Where steps miss the latency by more than this they were timed at another load than it, and are parts of their own
/// sum.
constexpr double most_in_no_step = 0.10;

/// A few words beside the line.
std::string_view program_words(Line line) {
    switch (line) {
        case Line::host_wait: return "idle: the next launch came too late";
        case Line::queued: return "idle between launches that came in time";
        case Line::overlap: return "on several streams at once";
        case Line::records: return "without records, less with them";
        case Line::residual: return "not explained";
        default: return "";
    }
}

/// A row a line of a program's time: kernels, copies, two kinds of idle time, what records add.
Rows lines_of_program(const TimeBreakdown& breakdown) {
    const TimesInUnit shown(breakdown.end_to_end_us * 1e-3);
    Rows rows{
        {words("Where the time goes"), figures(std::string(shown.unit())), figures("%"), words(""), words("", 1)}};
    double short_us = 0;
    const auto add = [&](std::string_view label, double us, std::string_view what) {
        const double share = us / breakdown.end_to_end_us;
        rows.rows.push_back(
            {std::string(label), shown(us * 1e-3), fixed(100 * share, 1), bar(share), std::string(what)});
    };
    for (std::size_t i = 0; i < line_count; ++i) {
        const double us = breakdown.total.us[i];
        if (std::abs(us) >= noteworthy_share * breakdown.end_to_end_us)
            add(info(line_at(i)).name, us, program_words(line_at(i)));
        else
            short_us += us;
    }
    if (short_us != 0) add("under 1 % each", short_us, "");
    return rows;
}

/// A row a cause; without causes, an op kind, and what is in no step.
Rows where_the_time_goes(const SectionContext& context) {
    const TimeBreakdown& breakdown = context.explanation().breakdown;
    if (context.point().program && breakdown.unavailable.empty() && breakdown.end_to_end_us > 0)
        return lines_of_program(breakdown);
    const CauseGroup& whole = context.explanation().causes.whole;
    const StepSums sums = by_op_kind(context.point());
    if (sums.groups.empty()) return {};
    const bool has_causes = context.explanation().causes.has_fits && whole.time_us > 0;
    const double latency_us = median_us(context.point());
    const bool is_of_steps = !has_causes && std::abs(latency_us - sums.time_us) > most_in_no_step * latency_us;
    const double all_us = has_causes ? whole.time_us : is_of_steps ? sums.time_us : latency_us;
    const TimesInUnit shown(all_us * 1e-3);
    Rows rows{{words(is_of_steps ? "Where the steps' time goes" : "Where the time goes"),
               figures(std::string(shown.unit())), figures("%"), words("")}};
    if (has_causes) rows.columns.push_back(words("", 1));
    const auto add = [&](std::string_view label, double us, std::string_view brief = "") {
        rows.rows.push_back({std::string(label), shown(us * 1e-3), fixed(100 * us / all_us, 1), bar(us / all_us)});
        if (has_causes) rows.rows.back().emplace_back(brief);
    };
    // What is short together, so that the rows still add up.
    double short_us = 0;
    const auto add_if_long = [&](std::string_view label, double us, std::string_view brief = "") {
        if (std::abs(us) >= noteworthy_share * all_us)
            add(label, us, brief);
        else
            short_us += us;
    };
    if (has_causes)
        for (std::size_t i = 0; i < cause_count; ++i)
            add_if_long(info(cause_at(i)).name, whole.lines.us[i].value,
                        cause_at(i) == Cause::useful && context.point().backend() == "cpu" ? "at its roof"
                                                                                           : info(cause_at(i)).brief);
    else
        for (const StepGroup& group : sums.groups) add_if_long(group.name, group.time_us);
    if (!has_causes && !is_of_steps) add_if_long("in no step", all_us - sums.time_us);
    if (short_us != 0) add("under 1 % each", short_us);
    return rows;
}

/// Layers are named up to half of a line, and so many at most.
constexpr double named_share = 0.5;
constexpr std::size_t most_named_layers = 2;

/// "; most in A and B": the layers with the longest parts of the line. Empty where
/// as many do not have half of it, or where one layer is all there is.
std::string most_in(const Causes& causes, Cause cause) {
    std::vector<const CauseGroup*> layers;
    for (const CauseGroup& layer : causes.by_layer) layers.push_back(&layer);
    if (layers.size() < 2) return "";
    const auto us_of = [cause](const CauseGroup* layer) { return layer->lines[cause].value; };
    std::ranges::stable_sort(layers, std::greater{}, us_of);
    std::vector<std::string> named;
    double named_us = 0;
    for (std::size_t i = 0; i < most_named_layers && named_us < named_share * causes.whole.lines[cause].value; ++i) {
        named_us += us_of(layers[i]);
        named.push_back(layers[i]->name);
    }
    if (named_us < named_share * causes.whole.lines[cause].value) return "";
    return fmt::format("; most in {}", fmt::join(named, " and "));
}

/// The changes that give most back. Without fits none: two of the largest causes are not known then.
Bullets largest_changes(const Explanation& explanation) {
    if (!explanation.causes.has_fits) return {};
    struct Change {
        double us;
        std::string text;
    };
    std::vector<Change> changes;
    const CauseGroup& whole = explanation.causes.whole;
    const TimesInUnit shown(whole.time_us * 1e-3);
    for (std::size_t i = 0; i < cause_count; ++i) {
        const std::string change = whole.change(cause_at(i));
        if (cause_at(i) == Cause::useful || cause_at(i) == Cause::unexplained || change.empty()) continue;
        const double us = whole.lines.us[i].value;
        if (us < noteworthy_change * whole.time_us) continue;
        // All layers have one clock.
        changes.push_back(
            {us, fmt::format("{} {} of {}: {}{}", shown(us * 1e-3), shown.unit(), info(cause_at(i)).name, change,
                             cause_at(i) == Cause::clock ? "" : most_in(explanation.causes, cause_at(i)))});
    }
    std::ranges::stable_sort(changes, std::greater{}, &Change::us);
    if (changes.size() > most_changes) changes.resize(most_changes);
    Bullets bullets;
    for (Change& change : changes) bullets.items.push_back(std::move(change.text));
    return bullets;
}

/// What a change could give back of a layer: all but useful work and what is not explained.
double recoverable_us(const CauseGroup& layer) {
    double us = 0;
    for (std::size_t i = 0; i < cause_count; ++i)
        if (cause_at(i) != Cause::useful && cause_at(i) != Cause::unexplained)
            us += std::max(0.0, layer.lines.us[i].value);
    return std::min(us, layer.time_us);
}

/// "compute" of "compute-bound".
std::string short_bound(const Explanation& explanation, const std::string& layer) {
    const auto found = std::ranges::find(explanation.verdicts.layers, layer, &Verdict::subject);
    if (found == explanation.verdicts.layers.end()) return "";
    const std::string_view word = name(found->bound);
    return std::string(word.substr(0, word.find('-')));
}

/// What limits the occupancy for most of the row's time.
std::string limiter_text(const TableRow& row) {
    std::map<std::string, double> us;
    for (const PlacedStep& placed : row.steps)
        for (const KernelResult& kernel : placed.step->kernels) us[joined(kernel.limiters, ",")] += kernel.time_us;
    const auto most = std::ranges::max_element(us, {}, [](const auto& one) { return one.second; });
    return most == us.end() ? "" : most->first;
}

/// "14.2 of 18.8": achieved, of what the launch allows; without counters "at most 18.8".
std::string occupancy_text(const std::string& achieved, const std::string& theory) {
    if (achieved.empty()) return theory.empty() ? "" : "at most " + theory;
    return theory.empty() ? achieved : achieved + " of " + theory;
}

/// Layers with occupancy and bound, those first of which most can be given back, or else that take longest.
Section layers_of(const SectionContext& context) {
    const Explanation& explanation = context.explanation();
    const Causes& causes = explanation.causes;
    const Point& point = context.point();
    // A step of a program whose layer is not known is called as its kernel is.
    const bool has_layers = !point.program || std::ranges::any_of(point.steps, [](const StepResult& step) {
        return step.layer != step.implementation;
    });
    TableQuery query;
    query.level = &find_level("layer");
    query.fold = true;
    query.sort = SortBy{"time_us", true};
    for (const char* column : {"layer", "occ_theory", "occ_achieved"}) query.columns.emplace_back(column);
    const QueriedTable found = query_point(context.result(), context.index, query);
    const StepSums sums = by_layer(point);
    const double all_us = causes.has_fits && causes.whole.time_us > 0 ? causes.whole.time_us
                          : point.program                             ? median_us(point)
                                                                      : sums.time_us;
    const TimesInUnit shown_time(all_us * 1e-3);
    struct Layer {
        double gain_us, us;
        std::vector<std::string> cells;
    };
    std::vector<Layer> layers;
    for (const TableRow& row : found.rows) {
        std::vector<std::string> cells;
        for (const Column& column : found.columns) {
            const Value value = column.value(row);
            cells.push_back(value == Value(NoValue::na) ? "" : shown(column, value));
        }
        const auto sum = std::ranges::find(sums.groups, cells[0], &StepGroup::name);
        if (sum == sums.groups.end()) continue;  // none of its steps was timed
        const auto cause = std::ranges::find(causes.by_layer, cells[0], &CauseGroup::name);
        const bool has_gain = explanation.concludes() && causes.has_fits && cause != causes.by_layer.end();
        const double gain_us = has_gain ? recoverable_us(*cause) : -1;
        layers.push_back({gain_us,
                          sum->time_us,
                          {cells[0], shown_time(sum->time_us * 1e-3), fixed(100 * sum->time_us / all_us, 1),
                           has_gain ? shown_time(gain_us * 1e-3) : "", short_bound(explanation, cells[0]),
                           occupancy_text(cells[2], cells[1]), limiter_text(row)}});
    }
    std::ranges::stable_sort(layers, std::greater{}, &Layer::gain_us);
    const std::size_t others = layers.size() - std::min(layers.size(), screen_layers);
    layers.resize(layers.size() - others);
    const bool by_gain = !layers.empty() && layers.front().gain_us >= 0;
    Rows rows{{names(!has_layers ? "kernel by time"
                     : by_gain   ? "layer by gain"
                                 : "layer by time"),
               figures(std::string(shown_time.unit())), figures("%"),
               figures(fmt::format("gain, {}", shown_time.unit())), words("bound"), figures("occ %, of max", 1),
               words("occ limit, mostly", 2)}};
    double shown_us = 0;
    for (Layer& layer : layers) {
        shown_us += layer.us;
        rows.rows.push_back(std::move(layer.cells));
    }
    if (others > 0)
        rows.rows.push_back({fmt::format("{} more", others), shown_time((sums.time_us - shown_us) * 1e-3),
                             fixed(100 * (sums.time_us - shown_us) / all_us, 1), "", "", "", ""});
    Section section{"", {std::move(rows)}};
    if (context.point().backend() == "cpu" && sums.time_us > (1 + said_above) * all_us)
        section.add(Paragraph{fmt::format("Steps are timed one by one: together they took {} of the time above.",
                                          percent(sums.time_us / all_us))});
    return section;
}

/// Latency, share of peak, what binds it and what changes could give back, each a card.
Facts key_facts(const SectionContext& context) {
    const Point& point = context.point();
    const Explanation& explanation = context.explanation();
    Facts facts{{}, "", "figure"};
    const Told latency = told_latency(point), peak = share_of_peak(context).told;
    facts.facts.push_back({"latency", latency.figure,
                           fmt::format("measured: median of {}{}{}", point.end_to_end->latency.summary_ms.n,
                                       latency.more.empty() ? "" : ", ", latency.more)});
    if (!peak.figure.empty())
        facts.facts.push_back(
            {"FLOP/s", peak.figure, "derived: " + (peak.more.empty() ? "no peak is known" : peak.more)});
    if (!explanation.concludes()) return facts;
    const Verdict& verdict = explanation.verdicts.model;
    if (!verdict.subject.empty())
        facts.facts.push_back({"bottleneck", std::string(name(verdict.bound)), "derived: " + reason_text(verdict)});
    const CauseGroup& whole = explanation.causes.whole;
    if (explanation.causes.has_fits && whole.time_us > 0) {
        const double us = recoverable_us(whole);
        facts.facts.push_back({"changes could give back", fmt::format("at most {}", time_text(us)),
                               fmt::format("derived: {} of the time", percent(us / whole.time_us))});
    }
    return facts;
}

/// The whole and its slowest layers, each as a sum of causes.
Chart layers_by_cause(const Causes& causes) {
    std::vector<const CauseGroup*> groups{&causes.whole};
    for (const CauseGroup& layer : causes.by_layer)
        if (groups.size() <= screen_layers) groups.push_back(&layer);
    return {"Time by layer and cause, ms",
            causes.by_layer.size() > screen_layers
                ? fmt::format("The slowest {} of {} layers, each by its own ops alone; * is every block.",
                              screen_layers, causes.by_layer.size())
                : "Each layer by its own ops alone; * is every block.",
            cause_bars(groups)};
}

}  // namespace

Section first_screen_section(const SectionContext& context) {
    const Explanation& explanation = context.explanation();
    Section section{"Why it takes this long"};
    if (!context.point().end_to_end || !explanation.concludes() || !explanation.breakdown.unavailable.empty()) {
        for (const std::string& sentence : explanation.answer) section.add(Paragraph{sentence, Tone::lead});
        return section;
    }
    add_found(section, explanation);
    for (const Fact& fact : answer_facts(explanation).facts)
        section.add(Paragraph{
            fmt::format("{} {}.", fact.label.ends_with('?') ? fact.label : fact.label + ":", fact.value), Tone::lead});
    section.add(key_facts(context));
    if (Bullets changes = largest_changes(explanation); !changes.items.empty()) {
        section.add(Paragraph{changes_heading});
        section.add(std::move(changes));
    }
    if (explanation.causes.has_fits) section.add(layers_by_cause(explanation.causes));
    Section sentences{"In sentences"};
    sentences.is_folded = true;
    for (const std::string& sentence : explanation.answer) sentences.add(Paragraph{sentence});
    section.add(std::move(sentences));
    return section;
}

Section more_section(const SectionContext& context) {
    const auto is_done = [](const Point& point) { return point.status == PointStatus::done; };
    if (std::ranges::none_of(context.result().points, is_done)) return {};
    return {"", {Paragraph{"--verbose prints every figure and where it comes from, report.html draws them."}}};
}

Section screen_section(const SectionContext& context) {
    const Point& point = context.point();
    Section section{""};
    if (!point.end_to_end) return section;
    section.add(figures_of(context));
    const auto add_apart = [&section](Section part) {
        if (!part.empty()) section.add(std::move(part));
    };
    Section answer{""};
    add_answer_to(answer, context.explanation());
    add_apart(std::move(answer));
    if (Rows rows = where_the_time_goes(context); !rows.rows.empty()) add_apart({"", {std::move(rows)}});
    if (Bullets changes = largest_changes(context.explanation()); !changes.items.empty())
        add_apart({"", {Paragraph{changes_heading}, std::move(changes)}});
    add_apart(layers_of(context));
    return section;
}

}  // namespace kbench
