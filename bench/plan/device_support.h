// What the libraries that providers call can do on a device: precisions, how wide a head is best padded, versions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bench/device/device.h"
#include "kbench/precision.h"

namespace kbench {

/// Empty when plans can compute in `precision` on `device`, else the reason.
std::string unsupported(const Device& device, Precision precision);

/// To what the columns of a head are padded, see padded_columns.
std::int64_t column_multiple(const Device& device, Precision precision);

/// The libraries that compute on `device`, by name, and their versions.
std::map<std::string, std::string> library_versions(const Device& device);

}  // namespace kbench
