// What perf_events.cpp and perf_memory.cpp read out of the text files that Linux has about counters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kbench::perf_text {

/// The parts between separators; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Without blanks and line ends around it.
std::string_view trim(std::string_view text);
/// The whole of `text` as a number, in hexadecimal behind "0x".
std::optional<std::uint64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);

/// Both ends belong to it.
struct Range {
    unsigned first, last;
};
/// "0-7,32-35" or "0,28"; none when it is anything else, or empty.
std::optional<std::vector<Range>> parse_ranges(std::string_view text);
/// The CPUs of such a list; none when it is none.
std::vector<int> parse_cpus(std::string_view text);

}  // namespace kbench::perf_text
