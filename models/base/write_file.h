// The one class of output: files that are either complete or as they were, written piece by piece, and files and
// folders that are new. A test forbids every other way to write.
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
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

/// A file that this process made, open for writing until its end. Throws UsageError where anything stands already, a
/// link to nothing too.
class NewFile {
  public:
    explicit NewFile(const std::filesystem::path& path);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    const std::filesystem::path& path() const { return path_; }
    int descriptor() const { return descriptor_; }

  private:
    std::filesystem::path path_;
    int descriptor_;
};

/// Makes the folder `path` itself. Throws UsageError where anything stands already, a link to nothing too.
void make_new_folder(const std::filesystem::path& path);

/// Whether anything stands at `path`, a link to nothing too.
bool stands(const std::filesystem::path& path);

/// Renames `path` to NAME.unreadable, or to NAME.unreadable-2 and so on where that stands. Where that cannot be done it
/// stays where it is.
void put_aside(const std::filesystem::path& path);

/// Removes the temporary files that write_file_atomically left in `folder` where a process was killed; those of a
/// process that lives stay. A folder that cannot be read has none.
void remove_abandoned_files(const std::filesystem::path& folder);

}  // namespace kbench
