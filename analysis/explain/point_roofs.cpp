// See point_roofs.h.
#include "analysis/explain/point_roofs.h"

#include <fmt/format.h>

namespace kbench {
namespace {

bool is_known(const Ledger& ledger) {
    return ledger.unavailable.empty() && ledger.end_to_end_us > 0 && ledger.total.demand_us() > 0;
}

}  // namespace

std::optional<double> roof_share(const Ledger& ledger) {
    if (!is_known(ledger)) return std::nullopt;
    return ledger.total.demand_us() / ledger.end_to_end_us;
}

std::string binding_roof(const Ledger& ledger) {
    if (!is_known(ledger)) return {};
    Line most = Line::compute;
    for (const Line line : {Line::dram, Line::l2, Line::l1})
        if (ledger.total[line] > ledger.total[most]) most = line;
    return std::string(info(most).name);
}

std::string verdict_text(const Verdict& verdict) {
    return verdict.level.empty() ? std::string(name(verdict.bound))
                                 : fmt::format("{} ({})", name(verdict.bound), verdict.level);
}

}  // namespace kbench
