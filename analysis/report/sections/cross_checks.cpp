#include "analysis/explain/cross_checks.h"

#include <fmt/format.h>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {

Section cross_checks_section(const SectionContext& context) {
    const std::vector<CrossCheck>& cross_checks = context.explanation().cross_checks;
    Section section{"Cross-checks"};
    if (cross_checks.empty()) return section;
    section.add(Paragraph{
        "The same quantity found in two ways that share no figure but the time. A difference is an error of one of them, or what the last column names."});
    Rows rows{{words("found from"), figures("ms"), words("and from"), figures("ms"), figures("difference %"),
               words("may differ by", 0, true)}};
    for (const CrossCheck& cross_check : cross_checks)
        rows.rows.push_back({cross_check.first, significant(cross_check.first_us * 1e-3), cross_check.second,
                             significant(cross_check.second_us * 1e-3),
                             fmt::format("{:+.1f}", 100 * (cross_check.second_us / cross_check.first_us - 1)),
                             cross_check.may_differ});
    section.add(std::move(rows));
    return section;
}

}  // namespace kbench
