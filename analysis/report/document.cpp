#include "analysis/report/document.h"

#include <algorithm>

namespace kbench {
namespace {

bool is_empty(const Paragraph& paragraph) { return paragraph.text.empty(); }
bool is_empty(const Bullets& bullets) { return bullets.items.empty(); }
bool is_empty(const Facts& facts) {
    return std::ranges::all_of(facts.facts, [](const Fact& fact) { return fact.value.empty() && fact.origin.empty(); });
}
bool is_empty(const Rows& rows) { return rows.rows.empty(); }

}  // namespace

bool Section::empty() const {
    const auto holds_nothing = [](const Block& block) {
        return std::visit([](const auto& one) { return is_empty(one); }, block);
    };
    return std::ranges::all_of(blocks, holds_nothing) && std::ranges::all_of(sections, &Section::empty);
}

}  // namespace kbench
