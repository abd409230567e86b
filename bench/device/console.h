// Standard output and standard error: everything is written to them here. A write that fails on standard output is
// reported at the end; one that fails on standard error is ignored.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace kbench {

/// At the start of the program. Descriptors 0 to 2 that are closed are opened on /dev/null, or the next file would have
/// their numbers; standard output so that writing to it fails. A reader that goes away (`| head -1`) ends no run.
void open_standard_streams();

/// Results and help, to standard output.
void put_text(std::string_view text);
template <class... T>
void put(fmt::format_string<T...> format, T&&... values) {
    put_text(fmt::format(format, std::forward<T>(values)...));
}

/// What people watch, to standard error: as it is, with its own ends of lines.
void say_text(std::string_view text);
/// Control characters, which could command a terminal, as spaces; ends of lines stay.
std::string without_controls(std::string text);
/// The same without control characters: values come from files.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
    say_text(without_controls(fmt::format(format, std::forward<T>(values)...)));
}

/// Flushes standard output. Why not all that was put there was written; empty where it was.
std::string output_failure();

}  // namespace kbench
