// Formats numbers for people: significant digits, SI prefixes, shares and units of time.
#include "models/base/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kbench {
namespace {

constexpr int most_decimals = 9;

/// Inserts a comma between groups of three digits of the integer part.
std::string group_thousands(std::string text) {
    const std::size_t first = text.starts_with('-') ? 1 : 0;
    std::size_t end = std::min(text.find('.'), text.size());
    while (end > first + 3) {
        end -= 3;
        text.insert(end, 1, ',');
    }
    return text;
}

/// Adds an SI prefix, from 10^-9 in steps of 1000; `last` is the largest one that the unit uses.
std::string with_prefix(double value, std::string_view unit, char last) {
    constexpr std::string_view prefixes = "num kMGT";
    constexpr std::size_t no_prefix = prefixes.find(' ');
    if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", significant(value), unit);
    std::size_t prefix = 0;
    double scaled = value * 1e9;
    // 999.5 is shown in three digits and so already reads as 1.00 of the next prefix.
    for (; std::abs(scaled) >= 999.5 && prefix < prefixes.find(last); ++prefix) scaled /= 1000;
    const std::string symbol = prefix == no_prefix ? "" : std::string(1, prefixes[prefix]);
    return fmt::format("{} {}{}", significant(scaled), symbol, unit);
}

}  // namespace

int decimals_for(double value, int digits) {
    if (value == 0 || !std::isfinite(value)) return 0;
    // Rounding may carry into one more digit: 0.9996 reads 1.00, not 1.000.
    const double rounded_up = std::abs(value) / (1 - 0.5 * std::pow(10.0, -digits));
    const int before_point = static_cast<int>(std::floor(std::log10(rounded_up))) + 1;
    return std::clamp(digits - before_point, 0, most_decimals);
}

std::string significant(double value, int digits) {
    if (!std::isfinite(value)) return "not finite";
    return group_thousands(fmt::format("{:.{}f}", value, decimals_for(value, digits)));
}

std::string format_flop(double flops) { return with_prefix(flops, "FLOP", 'T'); }
std::string format_flop_per_s(double flop_per_s) { return with_prefix(flop_per_s, "FLOP/s", 'T'); }
std::string format_bytes(double bytes) { return with_prefix(bytes, "B", 'G'); }
std::string format_bytes_per_s(double bytes_per_s) { return with_prefix(bytes_per_s, "B/s", 'G'); }
std::string format_joules(double joules) { return with_prefix(joules, "J", 'k'); }
std::string format_seconds(double seconds) { return with_prefix(seconds, "s", ' '); }

TimeUnit time_unit(double ms) {
    if (ms < 1) return {"us", 1e3};
    if (ms < 1e4) return {"ms", 1};
    return {"s", 1e-3};
}

std::string format_ms(double ms) {
    const TimeUnit unit = time_unit(ms);
    return fmt::format("{} {}", significant(ms * unit.per_ms), unit.name);
}

std::string one_line(std::string_view text) {
    std::string line(text);
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    std::replace_if(line.begin(), line.end(), is_control, ' ');
    return line;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string plural(std::int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace kbench
