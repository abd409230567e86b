// Files that are either complete or as they were, written piece by piece; result_json.h declares it for a text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace kbench {

using FileSink = std::function<void(std::span<const std::byte>)>;

/// `write` hands the contents to a sink, piece by piece: they go to a temporary file beside `path`, which is flushed
/// and renamed in the end. Throws UsageError when it cannot be written, and leaves nothing behind then.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const FileSink&)>& write);

}  // namespace kbench
