#include "analysis/explain/roof_breach.h"

namespace kbench {

std::optional<RoofBreach> worst_breach(const ExplainedResult& explained) {
    std::optional<RoofBreach> worst;
    for (std::size_t p = 0; p < explained.points().size(); ++p) {
        const std::optional<RoofBreach> own = worst_breach(explained.of(p));
        if (own && (!worst || own->excess > worst->excess)) worst = own;
    }
    return worst;
}

}  // namespace kbench
