// Searches a program's output line by line.
#include "bench/command/repeated/printed_metric.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

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

std::regex regex_of(const std::string& pattern) {
    try {
        std::regex regex(pattern);
        if (regex.mark_count() != 1)
            throw UsageError(fmt::format(
                "--metric '{}': must have one group, around the number, such as 'time: ([0-9.]+)'", pattern));
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
    std::string line;
    bool is_too_long = false;
    const auto end_line = [&] {
        too_long += is_too_long;
        if (!is_too_long)
            for (std::sregex_iterator match(line.begin(), line.end(), regex_), none; match != none; ++match)
                last = (*match)[1].str();
        line.clear();
        is_too_long = false;
    };
    std::ifstream in(file, std::ios::binary);
    for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) {
        if (*at == '\n' || *at == '\r')
            end_line();
        else if (line.size() < longest_line)
            line += *at;
        else
            is_too_long = true;
    }
    end_line();
    if (!last && too_long > 0)
        return {
            .why_not = fmt::format(
                "nothing that --metric matches (lines of more than {} characters, of which there are {}, are not searched)",
                longest_line, too_long)};
    if (!last) return {.why_not = "nothing that --metric matches"};
    const std::optional<double> number = number_of(*last);
    if (!number) return {.why_not = fmt::format("'{}' where --metric matches, which is no number", one_line(*last))};
    if (*number <= 0)
        return {.why_not = fmt::format("{} where --metric matches; a ratio needs numbers above 0", *last)};
    return {.value = *number, .why_not = {}};
}

}  // namespace kbench
