// The file that an injected process writes: one JSON object a line (docs/attach.md has the format). Made when the first
// line is written, so that a process that does nothing on a GPU leaves none.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kbench::attach {

/// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 become '?'.
std::string json_text(std::string_view text);

/// Adds a line. Lines of other threads may stand between two.
void write_line(std::string_view line);

template <class... Arguments>
void write(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    write_line(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// The number of `text`, whose line is written before its first use. From 1; 0 is the empty text.
std::uint32_t text_number(std::string_view text);

/// Something that the user should know.
void note(std::string_view text);

/// Writes the last line; what comes later, as records that CUPTI still had, is dropped.
void write_last_line(std::string_view line);

/// Gives what was written to the system: a process may end without a word.
void flush_lines();

}  // namespace kbench::attach
