#include "analysis/explain/cross_checks.h"

#include <fmt/format.h>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {

Section closures_section(const SectionContext& context) {
    const std::vector<Closure>& closures = context.explanation().closures;
    Section section{"Second accounts"};
    if (closures.empty()) return section;
    section.add(Paragraph{
        "The same quantity found in two ways that share no figure but the time. A difference is an error of one of them, or what the last column names."});
    Rows rows{{words("found from"), figures("ms"), words("and from"), figures("ms"), figures("difference %"),
               words("may differ by", 0, true)}};
    for (const Closure& closure : closures)
        rows.rows.push_back(
            {closure.first, significant(closure.first_us * 1e-3), closure.second, significant(closure.second_us * 1e-3),
             fmt::format("{:+.1f}", 100 * (closure.second_us / closure.first_us - 1)), closure.may_differ});
    section.add(std::move(rows));
    return section;
}

}  // namespace kbench
