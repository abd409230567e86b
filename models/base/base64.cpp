#include "models/base/base64.h"

#include <cstddef>
#include <cstdint>

namespace kbench {

static constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::string_view group = bytes.substr(at, 3);
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i)
            bits = bits << 8 | (i < group.size() ? static_cast<std::uint8_t>(group[i]) : 0U);
        for (std::size_t i = 0; i < 4; ++i) text += i <= group.size() ? base64_digits[bits >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t bits = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t digit = at < text.size() - padding ? base64_digits.find(text[at]) : 0;
        if (digit == std::string_view::npos) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        if (at % 4 == 3)
            for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 255);
    }
    bytes.resize(bytes.size() - padding);
    return bytes;
}

}  // namespace kbench
