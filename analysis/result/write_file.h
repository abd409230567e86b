// Files that are either complete or as they were, written piece by piece; result_json.h declares it for a text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace kbench {

using FileSink = std::function<void(std::span<const std::byte>)>;

/// Why `path` cannot be a file that is written: it is something else already, such as a device, a link or a directory.
/// Empty where it is a regular file or nothing.
std::string why_not_a_file(const std::filesystem::path& path);

/// `write` hands the contents to a sink, piece by piece: they go to a temporary file beside `path`, which is flushed
/// and renamed in the end. Throws UsageError when it cannot be written, or is no regular file, and
/// leaves nothing behind then.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const FileSink&)>& write);

/// Removes the temporary files that write_file_atomically left in `folder` where a process was killed; those of a
/// process that lives stay. A folder that cannot be read has none.
void remove_abandoned_files(const std::filesystem::path& folder);

}  // namespace kbench
