// Parsers of the kernel's small text files.
#include "bench/profile/perf_text.h"

#include <algorithm>
#include <charconv>

namespace kbench::perf_text {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::optional<std::uint64_t> parse_integer(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<std::vector<Range>> parse_ranges(std::string_view text) {
    std::vector<Range> ranges;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dash = part.find('-');
        const auto first = parse_integer(part.substr(0, dash));
        const auto last = dash == part.npos ? first : parse_integer(part.substr(dash + 1));
        if (!first || !last || *last < *first || *last > 1 << 20) return std::nullopt;
        ranges.push_back({static_cast<unsigned>(*first), static_cast<unsigned>(*last)});
    }
    return ranges.empty() ? std::nullopt : std::optional(ranges);
}

std::vector<int> parse_cpus(std::string_view text) {
    std::vector<int> cpus;
    for (const Range& range : parse_ranges(text).value_or(std::vector<Range>()))
        for (unsigned cpu = range.first; cpu <= range.last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    return cpus;
}

}  // namespace kbench::perf_text
