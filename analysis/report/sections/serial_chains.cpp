// The serial chain of a recurrent layer: what one time step takes, compared with its roof times.
#include "analysis/explain/serial_chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// "0.947 (grid_barrier)".
std::string exchange_cell(const SerialChain& group) {
    if (!group.exchange) return "";
    return fmt::format("{} ({})", significant(group.exchange->us), group.exchange->ceiling);
}

std::vector<std::string> cells_of(const SerialChain& group) {
    const bool has_roofs = group.together_us > 0;
    return {group.layer,
            group.op,
            fmt::to_string(group.steps.size()),
            fmt::to_string(group.each),
            significant(group.us()),
            has_roofs ? significant(group.together_us_of_one()) : "",
            has_roofs ? fixed(100 * group.together_share(), 1) : "",
            roofs_of_one(group),
            exchange_cell(group),
            std::string(name(group.bound))};
}

/// A row a phase.
void add_account(Section& section, const SerialChain& group) {
    const StepAccount& account = *group.account;
    const double cycles = cycles_of(account);
    section.add(Paragraph{fmt::format(
        "Where one step of {} spends its time, by clocks that the first thread of each of {} blocks reads{}. A step takes {} us with the clocks and {} without. A launch takes {} us before its first step: blocks start and load weights.",
        group.layer, account.blocks,
        group.steps.size() > 1 ? fmt::format(", mean of {} layers", group.steps.size()) : "", significant(account.us),
        significant(group.us()), significant(account.start_us, 2))});
    Rows rows{{words("part of a step"), figures("cycles, median of the blocks"), figures("least"), figures("most"),
               figures("share %")}};
    for (const StepPhase& phase : account.phases)
        rows.rows.push_back({phase.name, fixed(phase.median_cycles, 0), fixed(phase.least_cycles, 0),
                             fixed(phase.most_cycles, 0),
                             cycles > 0 ? fixed(100 * phase.median_cycles / cycles, 1) : ""});
    section.add(std::move(rows));
}

}  // namespace

Section serial_chains_section(const SectionContext& context) {
    const std::vector<SerialChain>& groups = context.explanation().time_steps;
    Section section{"Time steps"};
    if (groups.empty()) return section;
    const bool is_gpu = context.point().backend() == "cuda";
    section.add(Paragraph{fmt::format(
        "The time steps of a recurrent layer go one after another, so that its time is theirs times their number. Roofs together: what the work of one would take at all roofs one after another, which overlap.{}",
        is_gpu
            ? " Exchange: what handing on a result takes without any work, as many empty kernels of a graph as one has (graph_node), or, within one kernel, a barrier among all SMs (grid_barrier), which one among fewer may undercut."
            : "")});
    Rows rows{{names("layer"), words("op"), figures("steps"), figures("time steps of each"), figures("us of one"),
               figures("roofs together us"), figures("of its time %"), words("roofs, us"), words("exchange us"),
               words("verdict")}};
    for (const SerialChain& group : groups) rows.rows.push_back(cells_of(group));
    section.add(std::move(rows));
    if (!std::ranges::all_of(groups, &SerialChain::is_complete))
        section.add(Paragraph{
            fmt::format("Not all work was counted: what caches and units beyond these roofs would take is not known.{}",
                        is_gpu ? " --counters core,tensor,pipes counts more." : "")});
    for (const SerialChain& group : groups)
        if (group.account) add_account(section, group);
    return section;
}

std::string serial_chain_text(const std::vector<SerialChain>& groups) {
    return joined(groups, "; ", [](const SerialChain& group) {
        return fmt::format("{} x {} of {}, {} us each", group.steps.size(), group.each, group.op,
                           significant(group.us()));
    });
}

}  // namespace kbench
