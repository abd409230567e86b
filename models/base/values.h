// Values that people type: parsed, or refused in one line that says what would be right.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kbench/error.h"

namespace kbench {

/// Splits a comma-separated list.
std::vector<std::string> split(const std::string& text);

/// `text` in small letters.
std::string lower(std::string_view text);

/// Splits a comma-separated list of names: at least one, none of them empty.
std::vector<std::string> names(std::string_view option, const std::string& text);

/// A finite number, at least `least`; `what` names the kind of number in the error.
template <class T>
T number(std::string_view option, const std::string& text, T least, std::string_view what) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool is_finite = true;
    if constexpr (std::is_floating_point_v<T>) is_finite = std::isfinite(value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) || !is_finite)
        throw UsageError(fmt::format("{} '{}': must be {} of at least {}", option, text, what, least));
    return value;
}

/// A finite number above 0 at the begin of `text`, and what stands behind it; 0 and nothing where there is none.
std::pair<double, std::string_view> number_and_unit(std::string_view text);

/// Seconds of a time: "450us", "31ms", "1.5s", "8m", "1h", or "10" for seconds. At least `least`, a time too.
/// `otherwise`: what else the option takes, for the error.
double seconds(std::string_view option, const std::string& text, std::string_view least,
               std::string_view otherwise = "");

/// A word out of `allowed`; throws where it is another.
std::string word(std::string_view option, const std::string& text, std::span<const std::string_view> allowed);
inline std::string word(std::string_view option, const std::string& text,
                        std::initializer_list<std::string_view> allowed) {
    return word(option, text, std::span(allowed.begin(), allowed.size()));
}

}  // namespace kbench
