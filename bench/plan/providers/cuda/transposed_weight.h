// A copy of a weight as [n, k] on the device, for products that read it so.
#pragma once

#include <cstdint>

#include "kbench/precision.h"

namespace kbench {

/// packed [n, k] on the device = the transpose of plain [k, n] on the host; elements of `type`.
void pack_transposed(DataType type, const void* plain, std::int64_t k, std::int64_t n, void* packed);

}  // namespace kbench
