// Slabs, and scans that go by the bits of a type: an element is NaN when its magnitude's bits exceed infinity's.
#include "bench/measure/point/device_rows.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace kbench {
namespace {

/// Elements whose bits without the sign are at least `least`.
template <class Bits>
std::int64_t count_from(const reference::View& view, Bits least) {
    constexpr Bits magnitude = std::numeric_limits<Bits>::max() >> 1;
    const auto* data = static_cast<const Bits*>(view.data);
    std::int64_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count)
    for (std::int64_t r = 0; r < view.rows; ++r) {
        const Bits* row = data + r * view.stride;
        for (std::int64_t c = 0; c < view.columns; ++c) count += (row[c] & magnitude) >= least ? 1 : 0;
    }
    return count;
}

/// NaN alone lies `above` 1 beyond the bits of infinity, infinity itself at 0.
std::int64_t count_special(const reference::View& view, unsigned above) {
    switch (view.type) {
        case DataType::fp16: return count_from<std::uint16_t>(view, static_cast<std::uint16_t>(0x7c00 + above));
        case DataType::bf16: return count_from<std::uint16_t>(view, static_cast<std::uint16_t>(0x7f80 + above));
        case DataType::fp32: return count_from<std::uint32_t>(view, 0x7f800000u + above);
        case DataType::fp64: return count_from<std::uint64_t>(view, 0x7ff0000000000000u + above);
        case DataType::int32: break;
    }
    return 0;
}

}  // namespace

void visit_rows(Device& device, void* memory, const Operand& operand,
                const std::function<void(const reference::View& slab, std::int64_t first_row)>& visit,
                std::int64_t most_bytes) {
    const std::int64_t row_bytes = operand.stride * static_cast<std::int64_t>(size_of(operand.type));
    const std::int64_t rows = std::clamp<std::int64_t>(most_bytes / row_bytes, 1, operand.rows);
    const auto* in_place = static_cast<const std::byte*>(device.host_view(memory));
    std::unique_ptr<std::byte[]> copy;
    if (in_place == nullptr)
        copy = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(rows * row_bytes));
    for (std::int64_t first = 0; first < operand.rows; first += rows) {
        const std::int64_t count = std::min(rows, operand.rows - first);
        if (copy)
            device.download(copy.get(), static_cast<const std::byte*>(memory) + first * row_bytes,
                            static_cast<std::size_t>(count * row_bytes));
        const std::byte* slab = copy ? copy.get() : in_place + first * row_bytes;
        visit({slab, operand.type, count, operand.columns, operand.stride}, first);
    }
}

SafetensorsTensor tensor_on(Device& device, void* memory, const Operand& operand, const Tensor& tensor) {
    return {tensor.name, operand.type, tensor.shape, [&device, memory, &operand](const FileSink& sink) {
                visit_rows(device, memory, operand, [&](const reference::View& slab, std::int64_t) {
                    const std::size_t element = size_of(slab.type);
                    const auto* row = static_cast<const std::byte*>(slab.data);
                    for (std::int64_t r = 0; r < slab.rows; ++r)
                        sink({row + static_cast<std::size_t>(r * slab.stride) * element,
                              static_cast<std::size_t>(slab.columns) * element});
                });
            }};
}

std::int64_t count_nan(const reference::View& view) { return count_special(view, 1); }
std::int64_t count_not_finite(const reference::View& view) { return count_special(view, 0); }

}  // namespace kbench
