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

/// What a last digit that is one higher adds to a number that number_of() takes: 0.01 of "3.50", 100 of "1.2e+03".
double step_of(const std::string& text) {
    const std::size_t exponent = text.find_first_of("eE"), point = text.find('.');
    const std::size_t digits_end = std::min(exponent, text.size());
    const double decimals = point == text.npos ? 0.0 : static_cast<double>(digits_end - point - 1);
    const int power = exponent == text.npos ? 0 : std::stoi(text.substr(exponent + 1));
    return std::pow(10.0, power - decimals);
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
        found.step = step_of(*last);
    }
    return found;
}

}  // namespace kbench
