// Lines of CSV (RFC 4180), for every writer that makes them.
#pragma once

#include <span>
#include <string>

namespace kbench {

/// The cells, quoted only where RFC 4180 asks for it. Lines end in a bare line feed, which its readers take and cut and
/// awk need.
std::string csv_line(std::span<const std::string> cells);

}  // namespace kbench
