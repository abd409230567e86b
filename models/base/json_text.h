// Text that may become JSON: scanned before a parser reads it, as deep nesting would exhaust the stack and many members
// would take hours, and made fit for it.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

namespace kbench {

/// Deepest nesting allowed; no file of kbench or of a model needs more.
inline constexpr std::size_t deepest_json = 64;
/// Most members of an object that keeps their order. Such an object searches all members for each new one: 19,000
/// take 0.6 s.
inline constexpr std::size_t most_ordered_members = 20'000;

/// Throws UsageError, one line that begins with `path`, where brackets nest deeper than deepest_json or an object has
/// more than `most_members`. It does not check that the text is JSON; the parser does.
void check_json_text(std::string_view text, const std::string& path, std::size_t most_members = 10'000'000);

/// The parser's message without its own class and number in brackets.
std::string parser_message(const std::exception& error);

/// `text` with U+FFFD for bytes that are not UTF-8, which a command line or a file name may hold and JSON may not.
std::string valid_utf8(const std::string& text);

}  // namespace kbench
