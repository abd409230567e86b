// What a program wrote, line by line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace kbench {

/// More of a line is not kept. std::regex calls itself for each character: longer lines could end the stack.
inline constexpr std::size_t longest_output_line = 4096;

/// Calls `each` for every line of `file`, empty ones too; a carriage return ends a line as well, as of a bar that
/// rewrites itself. `is_whole`: false where the line is longer, and `line` its beginning.
void for_each_output_line(const std::filesystem::path& file,
                          const std::function<void(const std::string& line, bool is_whole)>& each);

/// The last line that is not empty, as one that can be shown; empty where there is none.
std::string last_output_line(const std::filesystem::path& file);

}  // namespace kbench
