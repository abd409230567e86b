// Comparison and counting, in parallel over rows.
#include "bench/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kbench {

Logits Logits::download(const Plan& plan, Backend& backend) {
    const Operand& operand = plan.logits_operand();
    std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
    backend.download(bytes.data(), plan.logits(), bytes.size());
    return {operand, std::move(bytes)};
}

reference::View Logits::view() const {
    return {bytes_.data(), operand_.type, operand_.rows, operand_.columns, operand_.stride};
}

std::int64_t Logits::count_not_finite() const {
    const reference::View logits = view();
    std::int64_t not_finite = 0;
#pragma omp parallel for schedule(static) reduction(+ : not_finite)
    for (std::int64_t r = 0; r < logits.rows; ++r)
        for (std::int64_t c = 0; c < logits.columns; ++c) not_finite += std::isfinite(logits(r, c)) ? 0 : 1;
    return not_finite;
}

std::string Logits::difference(const Logits& other) const {
    const reference::View a = view(), b = other.view();
    const std::size_t element_bytes = size_of(operand_.type);
    const std::size_t row_bytes = static_cast<std::size_t>(operand_.stride) * element_bytes;
    const std::size_t used_bytes = static_cast<std::size_t>(operand_.columns) * element_bytes;
    std::int64_t differing = 0, first_row = a.rows;
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(+ : differing) reduction(max : largest) reduction(min : first_row)
    for (std::int64_t r = 0; r < a.rows; ++r) {
        const std::size_t offset = static_cast<std::size_t>(r) * row_bytes;
        if (std::memcmp(bytes_.data() + offset, other.bytes_.data() + offset, used_bytes) == 0) continue;
        first_row = std::min(first_row, r);
        for (std::int64_t c = 0; c < a.columns; ++c) {
            differing += a(r, c) != b(r, c) ? 1 : 0;
            largest = std::max(largest, std::abs(a(r, c) - b(r, c)));
        }
    }
    if (first_row == a.rows) return "";
    return fmt::format("{} of {} logits differ between forwards of the same input, by up to {:.3g}, first at row {}",
                       differing, count(), largest, first_row);
}

}  // namespace kbench
