// Picks from a point's time breakdown the one roof, share and word that tables of a sweep show.
#include "analysis/explain/point_roofs.h"

#include <fmt/format.h>

namespace kbench {
namespace {

bool is_known(const TimeBreakdown& breakdown) {
    return breakdown.unavailable.empty() && breakdown.end_to_end_us > 0 && breakdown.roof_times.useful_us > 0;
}

}  // namespace

std::optional<double> roof_share(const TimeBreakdown& breakdown) {
    if (!is_known(breakdown)) return std::nullopt;
    return breakdown.roof_times.useful_us / breakdown.end_to_end_us;
}

std::string binding_roof(const TimeBreakdown& breakdown) {
    if (!is_known(breakdown)) return {};
    const RoofTimeSum* longest = breakdown.roof_times.longest();
    return longest == nullptr ? std::string() : longest->name;
}

std::string verdict_text(const Verdict& verdict) {
    return verdict.level.empty() ? std::string(name(verdict.bound))
                                 : fmt::format("{} ({})", name(verdict.bound), verdict.level);
}

}  // namespace kbench
