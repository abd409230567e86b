// Searches a program's output line by line.
#include "bench/command/repeated/printed_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "bench/command/repeated/output_lines.h"
#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::optional<double> number_of(const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// The digits of a number as number_of() takes it.
Digits digits_of(const std::string& text) {
    const std::size_t exponent = std::min(text.find_first_of("eE"), text.size()), point = text.find('.');
    Digits digits;
    for (const char c : text.substr(0, exponent))
        if (digits.significant > 0 || (c != '0' && c != '.')) digits.significant += c != '.';
    const int power = exponent == text.size() ? 0 : std::stoi(text.substr(exponent + 1));
    digits.decimals = (point == text.npos ? 0 : static_cast<int>(exponent - point - 1)) - power;
    return digits;
}

std::regex regex_of(const std::string& pattern) {
    try {
        std::regex regex(pattern);
        if (regex.mark_count() != 1)
            throw UsageError(fmt::format(
                "--metric '{}': must have one group, around the number, such as 'time: ([0-9.]+)'", pattern));
        if (std::regex_match("", regex))
            throw UsageError(fmt::format("--metric '{}': matches where nothing stands; try + in place of *", pattern));
        return regex;
    } catch (const std::regex_error& error) {
        throw UsageError(
            fmt::format("--metric '{}': must be wall or a regular expression: {}", pattern, one_line(error.what())));
    }
}

}  // namespace

PrintedMetric::PrintedMetric(const std::string& pattern) : regex_(regex_of(pattern)) {}

PrintedMetric::Found PrintedMetric::last_in(const std::filesystem::path& file) const {
    std::optional<std::string> last;
    std::size_t too_long = 0;
    for_each_output_line(file, [&](const std::string& line, bool is_whole) {
        too_long += !is_whole;
        if (!is_whole) return;
        for (std::sregex_iterator match(line.begin(), line.end(), regex_), none; match != none; ++match)
            if (const auto& group = (*match)[1]; group.matched) last = group.str();
    });
    Found found;
    const std::optional<double> number = last ? number_of(*last) : std::nullopt;
    if (!last) {
        found.why_not = "nothing that --metric matches";
        if (too_long > 0)
            found.why_not += fmt::format(" (lines of more than {} characters, of which there are {}, are not searched)",
                                         longest_output_line, too_long);
    } else if (!number) {
        found.why_not = fmt::format("'{}' where --metric matches, which is no number", one_line(*last));
    } else if (*number <= 0) {
        found.why_not = fmt::format("{} where --metric matches, and a ratio needs numbers above 0", *last);
    } else {
        found.value = *number;
        found.digits = digits_of(*last);
    }
    return found;
}

}  // namespace kbench
