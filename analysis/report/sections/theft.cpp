#include "analysis/explain/theft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr Level taken_levels[] = {Level::dram, Level::l2};

/// What the section says of work on SMs and not of work on a CPU's threads, and the other way round.
struct WorkTexts {
    std::string_view one, thief, all, taken, clock;
    std::string_view apart, together;  ///< what is said where BandwidthElasticity::apart holds, and where not
    std::string_view cannot_tell;
};
constexpr WorkTexts work_texts[] = {
    {"SM", "the others", "all SMs", "every kernel recorded", "SM MHz",
     " What the thief of DRAM takes of L2 on the way is taken out.",
     " The thief of DRAM takes L2's bandwidth on the way, which is not told apart here.",
     "What it cannot tell: work that uses less of a roof than the thief leaves is not slowed, however near it is. The thief's bytes pass through L2, and what they evict the work must read again. Every request waits longer beside a thief, so that a chain of dependent loads slows down a little. Records lengthen kernels of a few microseconds, which brings their elasticity nearer to 0. The kernels are those chosen for all SMs."},
    {"thread", "other cores", "all cores", "every step timed", "MHz", "",
     " The roof is the highest that was seen of the memory: by the work's threads, or by stores of all these cores. The thief stores past the caches and evicts nothing.",
     "What it cannot tell: work that uses less of a roof than the thief leaves is not slowed, however near it is. That is so where its threads cannot ask for all that DRAM gives: then DRAM does not bind them, and may bind more threads. Every request waits longer beside a thief, so that a chain of dependent loads slows down a little. Nothing takes the bandwidth of the last-level cache away."},
};

/// The largest share of a level that was taken away; 0: none was.
double most_taken(const BandwidthElasticity& theft, Level level) {
    const LevelElasticity& all = theft.model->at(level);
    return all.effects.empty() ? 0 : all.effects.back().share;
}

Rows theft_rows(std::string_view title, const BandwidthElasticity& theft, const std::vector<TheftGroup>& groups) {
    Rows rows{{names(std::string(title)), figures("steps"), figures("ms")}};
    for (const Level level : taken_levels) {
        if (most_taken(theft, level) <= 0) continue;
        rows.columns.push_back(
            {fmt::format("times at {:.0f} % of {} taken", 100 * most_taken(theft, level), name(level))});
        rows.columns.push_back({fmt::format("{} elasticity", name(level))});
    }
    const int decimals = decimals_for(theft.model->us.value * 1e-3, time_digits);
    const auto add = [&](const TheftGroup& group) {
        std::vector<std::string> cells{group.name, fmt::to_string(group.steps.size()),
                                       fixed(group.us.value * 1e-3, decimals)};
        for (const Level level : taken_levels) {
            if (most_taken(theft, level) <= 0) continue;
            const std::optional<Interval>& elasticity = group.at(level).elasticity;
            cells.push_back(fixed(group.at(level).effects.back().ratio.value, 2));
            cells.push_back(elasticity ? fmt::format("{:.2f} [{:.2f}, {:.2f}]", elasticity->value, elasticity->low,
                                                     elasticity->high)
                                       : "");
        }
        rows.rows.push_back(std::move(cells));
    };
    for (const TheftGroup& group : groups) add(group);
    add(*theft.model);
    return rows;
}

/// One row a run, in the order in which they were made.
Rows run_rows(const std::vector<TheftTimes>& runs, std::string_view clock) {
    Rows rows{{names("thief takes"), figures("% of its roof"), figures("ms a launch"), figures(std::string(clock))}};
    for (const TheftTimes& run : runs)
        rows.rows.push_back({std::string(taken_names[static_cast<int>(run.taken)]),
                             run.share > 0 ? fixed(100 * run.share, 1) : "",
                             fixed(run.latency_ms, decimals_for(run.latency_ms, time_digits)),
                             run.clock_mhz > 0 ? fixed(run.clock_mhz, 0) : ""});
    return rows;
}

/// With what the times beside a thief that takes bandwidth are compared.
std::string comparison_text(const BandwidthElasticity& theft) {
    if (theft.turns > 0)
        return fmt::format(
            "It and one that only computes change places in {} turns, and figures are medians over the turns: what slows the host down for longer than a turn is in both.",
            theft.turns);
    const double by_power = theft.model->us.value / theft.model->alone_us.value - 1;
    return fmt::format(
        "A thief that only computes shows what power and clock do: with it the steps take {:.1f} % {} time than beside an idle one, and the other times are compared with that.",
        100 * std::abs(by_power), by_power < 0 ? "less" : "more");
}

void add_sentences(Bullets& bullets, const TheftGroup& group) {
    for (const Level level : taken_levels)
        if (std::string text = sentence(group, group.at(level)); !text.empty())
            bullets.items.push_back(std::move(text));
}

}  // namespace

Section theft_section(const SectionContext& context) {
    const BandwidthElasticity& theft = context.explanation().theft;
    Section section{"Time against bandwidth"};
    if (!theft.unavailable.empty()) section.add(Paragraph{theft.unavailable, Tone::missing});
    if (!theft.model) return section;
    const WorkTexts& texts = work_texts[static_cast<int>(theft.workers)];
    section.add(Paragraph{fmt::format(
        "The same work on {} {}, while a thief on {} takes a part of what {} share, {}. {} The elasticity is ln(time ratio) / ln(roof / what was left of it): 1 where time grows as bandwidth is taken away, 0 where it stays.{}{}",
        theft.multiprocessors, theft.multiprocessors == 1 ? texts.one : name(theft.workers), texts.thief, texts.all,
        texts.taken, comparison_text(theft),
        std::ranges::any_of(context.explanation().facts.theft_times,
                            [](const TheftTimes& run) { return run.clock_mhz > 0; })
            ? " Its interval holds the figure at equal clocks, too."
            : "",
        theft.apart ? texts.apart : texts.together)});
    Bullets sentences;
    add_sentences(sentences, *theft.model);
    for (const TheftGroup& group : theft.by_op) add_sentences(sentences, group);
    section.add(theft_rows("op kind", theft, theft.by_op));
    section.add(std::move(sentences));
    section.add(Section{"By layer", {theft_rows("layer", theft, theft.by_layer)}});
    section.add(Section{"Runs beside a thief", {run_rows(context.explanation().facts.theft_times, texts.clock)}});
    section.add(Paragraph{std::string(texts.cannot_tell)});
    return section;
}

}  // namespace kbench
