// Parses values that people type and says what would be right where one is wrong.
#include "models/base/values.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "models/base/nearest.h"

namespace kbench {

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

std::string lower(std::string_view text) {
    std::string small(text);
    for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return small;
}

std::vector<std::string> names(std::string_view option, const std::string& text) {
    std::vector<std::string> parts = split(text);
    if (text.ends_with(',')) parts.emplace_back();
    if (parts.empty() || std::ranges::find(parts, "") != parts.end())
        throw UsageError(fmt::format("{} '{}': an empty name in the list", option, text));
    return parts;
}

std::string word(std::string_view option, const std::string& text, std::span<const std::string_view> allowed) {
    if (std::ranges::find(allowed, text) != allowed.end()) return text;
    throw UsageError(fmt::format("{} '{}': {}", option, text, nearest_name(text, allowed)));
}

}  // namespace kbench
