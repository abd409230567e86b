// Checks sizes against their bounds, in double so that no product overflows.
#include "models/base/sizes.h"

#include <fmt/format.h>

#include "kbench/error.h"

namespace kbench {

double product_of(std::span<const std::int64_t> sizes) {
    double product = 1;
    for (const std::int64_t size : sizes) product *= static_cast<double>(size);
    return product;
}

void require_countable(double elements, const std::string& what) {
    if (elements > most_elements)
        throw UsageError(
            fmt::format("{}: {:.3g} numbers; no memory holds more than {:.3g}", what, elements, most_elements));
}

}  // namespace kbench
