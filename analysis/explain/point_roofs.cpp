// Picks from a point's time breakdown the one roof, share and word that tables of a sweep show.
#include "analysis/explain/point_roofs.h"

#include <fmt/format.h>

namespace kbench {
namespace {

bool is_known(const Ledger& ledger) {
    return ledger.unavailable.empty() && ledger.end_to_end_us > 0 && ledger.demands.useful_us > 0;
}

}  // namespace

std::optional<double> roof_share(const Ledger& ledger) {
    if (!is_known(ledger)) return std::nullopt;
    return ledger.demands.useful_us / ledger.end_to_end_us;
}

std::string binding_roof(const Ledger& ledger) {
    if (!is_known(ledger)) return {};
    const DemandSum* longest = ledger.demands.longest();
    return longest == nullptr ? std::string() : longest->name;
}

std::string verdict_text(const Verdict& verdict) {
    return verdict.level.empty() ? std::string(name(verdict.bound))
                                 : fmt::format("{} ({})", name(verdict.bound), verdict.level);
}

}  // namespace kbench
