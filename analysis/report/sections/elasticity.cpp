#include "analysis/explain/elasticity.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

Rows group_rows(std::string_view title, const SmElasticity& elasticity, const std::vector<SmGroup>& groups) {
    Rows rows{{names(std::string(title)), figures("steps"),
               figures(fmt::format("ms on {} {}", elasticity.multiprocessors, name(elasticity.workers)))}};
    for (const SmEffect& effect : elasticity.model->effects) {
        rows.columns.push_back({fmt::format("times on {}", effect.multiprocessors)});
        rows.columns.push_back({fmt::format("elasticity on {}", effect.multiprocessors)});
    }
    const int decimals = decimals_for(elasticity.model->us.value * 1e-3, time_digits);
    const auto add = [&](const SmGroup& group) {
        std::vector<std::string> cells{group.name, fmt::to_string(group.steps), fixed(group.us.value * 1e-3, decimals)};
        for (const SmEffect& effect : group.effects) {
            cells.push_back(fixed(effect.ratio.value, 2));
            cells.push_back(
                fmt::format("{:.2f} [{:.2f}, {:.2f}]", effect.at_equal_clocks.value, effect.low(), effect.high()));
        }
        rows.rows.push_back(std::move(cells));
    };
    for (const SmGroup& group : groups) add(group);
    add(*elasticity.model);
    return rows;
}

/// What the section says of the one kind of workers and not of the other.
struct WorkerTexts {
    std::string_view one, taken, cannot_tell;
};
constexpr WorkerTexts worker_texts[] = {
    {"SM", "every kernel recorded",
     "What it cannot tell: which part of an SM is the bottleneck, and which of DRAM, L2, launches and gaps is where SMs are not. Far fewer SMs ask for fewer bytes at a time, so that even a copy slows down: only the nearest numbers decide. Blocks come in waves, so that one more wave is a step and no slope. Records lengthen kernels of a few microseconds, which brings their elasticity nearer to 0. The kernels are those chosen for all SMs."},
    {"thread", "every step timed",
     "What it cannot tell: which part of a core is the bottleneck, and which of DRAM and a shared cache is where threads are not. Fewer threads ask for fewer bytes at a time: where all of them together just reach DRAM's bandwidth, both look like the bottleneck. Work is divided among threads, so that a part left over is a step and no slope. Steps are made again for fewer threads, and a library may choose another kernel for them."},
};

/// "2.1 % higher on 96, 4.0 % on 64 and unknown on 32".
std::string clocks_text(const SmElasticity& elasticity) {
    std::string text;
    for (std::size_t i = 0; i < elasticity.clock_ratios.size(); ++i) {
        const double ratio = elasticity.clock_ratios[i];
        const int count = elasticity.model->effects[i].multiprocessors;
        text += i == 0 ? "" : i + 1 == elasticity.clock_ratios.size() ? " and " : ", ";
        text +=
            fmt::format("{} on {} {}", ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "unknown", count,
                        count == 1 ? worker_texts[static_cast<int>(elasticity.workers)].one : name(elasticity.workers));
    }
    return text;
}

std::string clock_sentence(const SmElasticity& elasticity) {
    if (std::ranges::all_of(elasticity.clock_ratios, [](double ratio) { return ratio <= 0; }))
        return "Their clock was not read; the interval holds the spread of the launches.";
    return fmt::format(
        "{}' clock changed by {}, and is divided out; the interval holds the figure with and without that, and the spread of the launches.",
        elasticity.workers == Workers::sms ? "The SMs" : "Their cores", clocks_text(elasticity));
}

}  // namespace

Section elasticity_section(const SectionContext& context) {
    const SmElasticity& elasticity = context.explanation().elasticity;
    const std::string_view workers = name(elasticity.workers);
    const WorkerTexts& texts = worker_texts[static_cast<int>(elasticity.workers)];
    Section section{fmt::format("Time against {}", workers)};
    if (!elasticity.unavailable.empty()) section.add(Paragraph{elasticity.unavailable, Tone::missing});
    if (const std::optional<SmScaling>& scaling = context.point().sm_scaling; scaling && !scaling->ended.empty())
        section.add(Paragraph{fmt::format("Fewer were not measured; {}.", scaling->ended)});
    if (!elasticity.model) return section;
    section.add(Paragraph{fmt::format(
        "The same work with {0} taken away, {1}. The elasticity is ln(time ratio) / ln({2} ratio): 1 where time grows as {0} are taken away, 0 where it stays. {3}",
        workers, texts.taken, texts.one, clock_sentence(elasticity))});
    Bullets sentences;
    for (const SmGroup& group : elasticity.by_op)
        sentences.items.push_back(sentence(group, elasticity.multiprocessors));
    section.add(group_rows("op kind", elasticity, elasticity.by_op));
    section.add(std::move(sentences));
    section.add(Section{"By layer", {group_rows("layer", elasticity, elasticity.by_layer)}});
    section.add(Paragraph{std::string(texts.cannot_tell)});
    return section;
}

}  // namespace kbench
