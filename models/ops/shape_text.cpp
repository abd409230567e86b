// Parses shapes as people write them, and writes them.
#include <charconv>

#include <fmt/format.h>

#include "kbench/op.h"
#include "models/base/sizes.h"

namespace kbench {

ShapeText::ShapeText(std::string_view text) {
    const std::string_view whole = text;
    double product = 1;
    for (std::size_t plus = text.rfind('+'); plus != text.npos; plus = text.rfind('+')) {
        suffixes_.insert(suffixes_.begin(), text.substr(plus + 1));
        text = text.substr(0, plus);
    }
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        const char letter = *at++;
        std::int64_t value = 0;
        if (letter < 'a' || letter > 'z' || values_.contains(letter)) throw Wrong();
        if (at != end && *at >= '0' && *at <= '9') {
            const auto [next, error] = std::from_chars(at, end, value);
            if (error != std::errc{} || value < 1) throw Wrong();
            at = next;
        }
        values_[letter] = value;
        if (value > 1) product *= static_cast<double>(value);
    }
    // No operand has more elements than the product of all sizes.
    require_countable(product, fmt::format("shape '{}'", whole));
}

std::int64_t ShapeText::size(char letter) {
    const auto found = values_.extract(letter);
    if (found.empty() || found.mapped() < 1) throw Wrong();
    return found.mapped();
}

std::int64_t ShapeText::size_or(char letter, std::int64_t otherwise) {
    return values_.contains(letter) ? size(letter) : otherwise;
}

bool ShapeText::flag(char letter) {
    const auto found = values_.extract(letter);
    if (!found.empty() && found.mapped() != 0) throw Wrong();
    return !found.empty();
}

bool ShapeText::suffix(std::string_view word) {
    if (suffixes_.empty() || suffixes_.front() != word) return false;
    suffixes_.erase(suffixes_.begin());
    return true;
}

std::string shape_text(std::initializer_list<std::pair<char, std::int64_t>> sizes) {
    std::string text;
    for (const auto& [letter, size] : sizes) text += letter + std::to_string(size);
    return text;
}

}  // namespace kbench
