// Matrices on a device that may be larger than the host's memory: looked at a slab of rows at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/device/device.h"
#include "bench/plan/data/write_safetensors.h"
#include "cpu/reference/reference.h"
#include "kbench/step.h"
#include "models/model.h"

namespace kbench {

/// Large enough for copies at full speed.
inline constexpr std::int64_t slab_bytes = std::int64_t{64} << 20;

/// Calls `visit` with the rows of `operand`, which lies at `memory`, from the first to the last: slabs of at most
/// `most_bytes` and at least one row, and the index of each slab's first row. On a CPU a slab is a part of the memory
/// itself; otherwise it is a copy that lasts for the call. Throws DeviceError.
void visit_rows(Device& device, void* memory, const Operand& operand,
                const std::function<void(const reference::View& slab, std::int64_t first_row)>& visit,
                std::int64_t most_bytes = slab_bytes);

/// A tensor of a file to be written, with the name and the shape of `tensor` and the elements of `operand`, which lies
/// at `memory` and has as many. All of them must outlive it.
SafetensorsTensor tensor_on(Device& device, void* memory, const Operand& operand, const Tensor& tensor);

/// Elements of `view`, padding apart, that are NaN; none where they are integers. On all OpenMP threads.
std::int64_t count_nan(const reference::View& view);
/// The same for elements that are NaN or infinite.
std::int64_t count_not_finite(const reference::View& view);

}  // namespace kbench
