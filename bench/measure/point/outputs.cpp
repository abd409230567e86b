// Comparison and counting, in parallel over rows.
#include "bench/measure/point/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/measure/point/device_rows.h"

namespace kbench {

OutputRows OutputRows::download(const Plan& plan, TensorId id, Device& device, std::int64_t most_bytes) {
    const Operand& all = plan.operand(id);
    const std::int64_t row_bytes = all.stride * static_cast<std::int64_t>(size_of(all.type));
    const std::int64_t every = (all.rows * row_bytes + most_bytes - 1) / most_bytes;
    Operand kept = all;
    kept.rows = kept.allocated_rows = (all.rows + every - 1) / every;
    std::vector<std::byte> bytes(static_cast<std::size_t>(kept.bytes()));
    const auto* memory = static_cast<const std::byte*>(plan.address(id));
    if (every == 1) {
        device.download(bytes.data(), memory, bytes.size());
    } else {
        for (std::int64_t row = 0; row < kept.rows; ++row)
            device.download(bytes.data() + row * row_bytes, memory + row * every * row_bytes,
                            static_cast<std::size_t>(row_bytes));
    }
    return {plan.model().tensors[id].name, kept, std::move(bytes), every};
}

std::int64_t count_not_finite(const Plan& plan, TensorId id, Device& device) {
    std::int64_t count = 0;
    visit_rows(device, plan.address(id), plan.operand(id),
               [&](const reference::View& slab, std::int64_t) { count += count_not_finite(slab); });
    return count;
}

std::int64_t output_bytes(const Model& model, const Layout& layout) {
    std::int64_t bytes = 0;
    for (const TensorId id : model.outputs) bytes += layout.places[id].operand.bytes();
    return bytes;
}

reference::View OutputRows::view() const {
    return {bytes_.data(), kept_.type, kept_.rows, kept_.columns, kept_.stride};
}

std::string OutputRows::difference(const OutputRows& other) const {
    const reference::View a = view(), b = other.view();
    const std::size_t element_bytes = size_of(kept_.type);
    const std::size_t row_bytes = static_cast<std::size_t>(kept_.stride) * element_bytes;
    const std::size_t used_bytes = static_cast<std::size_t>(kept_.columns) * element_bytes;
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
    const std::string compared = every_ == 1 ? std::string() : fmt::format(" (one row of {} was compared)", every_);
    return fmt::format("{} of {} {}{} differ between runs of the same input, by up to {:.3g}, first at row {}",
                       differing, count(), name_, compared, largest, first_row * every_);
}

}  // namespace kbench
