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

std::pair<double, std::string_view> number_and_unit(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value) || value <= 0) return {0, ""};
    return {value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

namespace {

/// Seconds, 0 where `text` is no time.
double time_of(std::string_view text) {
    constexpr std::pair<std::string_view, double> units[] = {{"", 1},  {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                                             {"s", 1}, {"m", 60},    {"h", 3600}};
    const auto [value, told] = number_and_unit(text);
    for (const auto& [unit, factor] : units)
        if (told == unit && std::isfinite(value * factor)) return value * factor;
    return 0;
}

}  // namespace

double seconds(std::string_view option, const std::string& text, std::string_view least, std::string_view otherwise) {
    const double time = time_of(text);
    if (time > 0 && time >= time_of(least)) return time;
    throw UsageError(fmt::format("{} '{}': must be a time of at least {}, such as 31ms, 1.5s, 8m or 10 for seconds{}",
                                 option, text, least, otherwise));
}

std::string word(std::string_view option, const std::string& text, std::span<const std::string_view> allowed) {
    if (std::ranges::find(allowed, text) != allowed.end()) return text;
    throw UsageError(fmt::format("{} '{}': {}", option, text, nearest_name(text, allowed)));
}

}  // namespace kbench
