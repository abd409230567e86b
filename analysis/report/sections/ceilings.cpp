#include "analysis/machine/ceilings.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/machine/usable_roofs.h"
#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {

namespace {

constexpr int digits = 4;

/// Where the datasheet's values are from, each source once; or why there are none.
Bullets sources(const CeilingRun& run) {
    const auto is_stated = [](const Ceiling& ceiling) { return ceiling.datasheet.value.has_value(); };
    const bool any = std::ranges::any_of(run.ceilings, is_stated);
    Bullets list;
    for (const Ceiling& ceiling : run.ceilings) {
        const std::string& reason = ceiling.datasheet.reason;
        if (is_stated(ceiling) != any || reason.empty()) continue;
        add_once(list.items, (any ? "" : "no datasheet: ") + reason);
    }
    return list;
}

}  // namespace

Section ceilings_section(const CeilingRun& run) {
    Section section{"Ceilings"};
    if (run.ceilings.empty())
        return missing_section(section.title, run.unavailable.empty() ? "the result has none" : run.unavailable);
    section.add(Paragraph{
        fmt::format("Of {}{}, measured {} in {}. The share is that of the datasheet's value (estimated).", run.device,
                    run.driver.empty() ? "" : ", driver " + run.driver, run.measured_at, format_seconds(run.seconds))});
    Rows rows{{names("ceiling"), figures("value"), words("unit"), figures("interval"), figures("threads"),
               figures("at MHz"), figures("datasheet"), figures("share %"), words("origin", 1),
               words("what it is", 0, true)}};
    for (const Ceiling& ceiling : run.ceilings) {
        const auto kinds = ceiling_kinds();
        const auto kind = std::ranges::find(kinds, ceiling.name, &CeilingKind::name);
        const bool measured = ceiling.value.value.has_value();
        const std::optional<double>& stated = ceiling.datasheet.value;
        const std::string what(kind == kinds.end() ? "not known to this version" : kind->what);
        rows.rows.push_back(
            {ceiling.name, measured ? significant(*ceiling.value.value, digits) : "na",
             kind == kinds.end() ? "" : std::string(kind->unit),
             measured ? fmt::format("{} to {}", significant(ceiling.low, digits), significant(ceiling.high, digits))
                      : "",
             ceiling.threads ? std::to_string(*ceiling.threads) : "",
             ceiling.clock_mhz > 0 ? fixed(ceiling.clock_mhz, 0) : "", stated ? significant(*stated, digits) : "",
             measured && stated && *stated > 0 ? fixed(100 * *ceiling.value.value / *stated, 1) : "",
             std::string(name(ceiling.value.origin)),
             measured ? what : fmt::format("{}: {}", what, ceiling.value.reason)});
    }
    section.add(std::move(rows));
    section.add(sources(run));
    return section;
}

Section ceilings_section(const SectionContext& context) {
    Section section = ceilings_section(usable_ceilings(context.result()));
    section.is_folded = true;
    return section;
}

}  // namespace kbench
