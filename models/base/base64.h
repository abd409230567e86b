// Bytes as text (RFC 4648, section 4), for formats that hold text alone: three bytes make four characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kbench {

std::string base64(std::string_view bytes);

/// The bytes again; nothing where `text` is not of base64's characters, padded to a multiple of four.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace kbench
