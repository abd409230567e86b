// Files of users, whole.
#pragma once

#include <filesystem>
#include <string>

namespace kbench {

/// Throws UsageError, one line that begins with the path: not there, a directory, not readable, or read to no end. What
/// can be read but once, such as a pipe, is remembered: whoever asks again gets the same. While nobody writes into a
/// pipe a line on stderr says so.
std::string read_whole_file(const std::filesystem::path& path);

}  // namespace kbench
