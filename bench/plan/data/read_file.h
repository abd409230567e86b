// Files of users, whole.
#pragma once

#include <filesystem>
#include <string>

namespace kbench {

/// Throws UsageError, one line that begins with the path: not there, a directory, not readable, or read to no end.
std::string read_whole_file(const std::filesystem::path& path);

}  // namespace kbench
