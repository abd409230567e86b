
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::size_t most_reasons = 3;
constexpr double noteworthy_loss = 0.02;  ///< share of the time

/// "long_scoreboard 44 [38, 49], barrier 20 [11, 22]": parts of the time, percent.
std::string reasons_cell(const CycleGroup& group) {
    std::vector<std::string> parts;
    const auto share = [&](double us) { return 100 * us / group.time_us; };
    for (const LostCycles& lost : group.lost) {
        if (std::max(lost.high, lost.best()) < noteworthy_loss * group.time_us || parts.size() == most_reasons)
            continue;
        parts.push_back(fmt::format("{} {:.0f}", lost.reason, share(lost.best())));
        if (lost.high > 0) parts.back() += fmt::format(" [{:.0f}, {:.0f}]", share(lost.low), share(lost.high));
    }
    if (group.not_split_us >= noteworthy_loss * group.time_us)
        parts.push_back(fmt::format("not split {:.0f}", share(group.not_split_us)));
    return joined(parts, ", ");
}

Rows group_rows(const CycleAccounts& accounts) {
    Rows rows{{names("layer"), figures("ms"), figures("no warp %")}};
    if (accounts.has_ends) {
        rows.columns.push_back({"start, end %"});
        rows.columns.push_back({"uneven %"});
    }
    rows.columns.push_back({"issuing %"});
    rows.columns.push_back({"not issuing %"});
    rows.columns.push_back({"waiting for, % of the time [from, to]", Align::left});
    const auto add = [&](const CycleGroup& group) {
        const auto share = [&](double us) { return fixed(100 * us / group.time_us, 1); };
        std::vector<std::string> cells{
            group.name, fixed(group.time_us * 1e-3, decimals_for(accounts.total.time_us * 1e-3, time_digits)),
            share(group.no_warp_us)};
        if (accounts.has_ends) {
            cells.push_back(share(group.ends_us));
            cells.push_back(share(group.uneven_us));
        }
        cells.push_back(share(group.issuing_us));
        cells.push_back(share(group.not_issuing_us));
        cells.push_back(reasons_cell(group));
        rows.rows.push_back(std::move(cells));
    };
    for (const CycleGroup& group : accounts.by_layer) add(group);
    add(accounts.total);
    return rows;
}

}  // namespace

Section cycles_section(const SectionContext& context) {
    const CycleAccounts& accounts = context.explanation().cycles;
    Section section{"Cycles"};
    if (!accounts.unavailable.empty()) return section;
    section.add(Paragraph{
        "Counted independently of the roof times above: the part of the kernels' time in which SMs were idle (no warp), issuing, or stalled (warps, none of which could issue). A busy tensor pipe needs few issues, so a stalled cycle is no loss by itself."});
    section.add(group_rows(accounts));
    const bool has_bounds = std::ranges::any_of(accounts.steps, &CycleAccount::has_bounds);
    std::string closing;
    if (accounts.sampled_us > 0)
        closing += fmt::format(
            "What warps wait for was sampled in cycles without an issue{}. ",
            has_bounds
                ? fmt::format(
                      "; in brackets what counted warps allow. Of {} reasons of a step that take {:.0f} % of its time or more, {} lie outside of these by over 1 % of the time",
                      accounts.compared, 100 * noteworthy_loss, accounts.outside)
                : "");
    if (has_bounds) {
        closing += fmt::format(
            "What counters say of it is an interval, because they count warps and not cycles. Counts that should be equal are at most so far apart: reasons and resident warps {:.1f} %, selected warps and issues {:.1f} %, selected or ready and eligible warps {:.1f} %; where one is beyond {:.0f} % the step is not split.",
            100 * std::abs(accounts.worst.stalls), 100 * std::abs(accounts.worst.selected),
            100 * std::abs(accounts.worst.eligible), 100 * agreement_tolerance);
    } else if (accounts.sampled_us == 0) {
        const auto why =
            std::ranges::find_if(accounts.steps, [](const CycleAccount& a) { return !a.not_split.empty(); });
        if (why != accounts.steps.end()) closing = fmt::format("Not split: {}.", why->not_split);
    }
    if (accounts.uncounted_us > 0)
        closing += fmt::format("{}Steps with {} ms have no such counters.", closing.empty() ? "" : " ",
                               significant(accounts.uncounted_us * 1e-3));
    if (!closing.empty()) section.add(Paragraph{closing});
    return section;
}

}  // namespace kbench
