// Where a command that measures puts its results, and what every such result warns of.
#pragma once

#include <filesystem>
#include <string>

#include "bench/device/device.h"
#include "bench/measure/store/folder_lock.h"
#include "kbench/result.h"

namespace kbench {

/// Held as long as this lives.
struct OutputDirectory {
    std::filesystem::path path;
    FolderLock lock;
};

/// kbench-runs/<time>-<what>, with a number where another run began in the same second. Where it cannot be made, its
/// use says so.
std::filesystem::path new_directory(const std::string& what);

/// The directory for results, made and proven writable before anything is measured: `asked`, or
/// kbench-runs/<time>-<what> where that is empty. Throws UsageError; also where another kbench writes there, and where
/// `asked` holds a result already or anything else called as what commands write (is_written_name), but for what a
/// sweep that is to be resumed left.
OutputDirectory prepare_directory(const std::filesystem::path& asked, const std::string& what, bool resume = false);

/// Whether a command that measures may write a file or a folder called `name` into its --out.
bool is_written_name(const std::string& name);
/// Whether `file` is one that a command with --out `out` may write there or in a folder of its own there.
bool is_written_into(const std::filesystem::path& out, const std::filesystem::path& file);

/// Throws UsageError where `path` holds what a command would write over.
void refuse_what_stands(const std::filesystem::path& path, bool resume);

/// What of device, build and options makes a result less than it could be. `remark` as choose_devices gives it.
void add_run_warnings(Result& result, const Device& device, const std::string& remark, bool verified);

}  // namespace kbench
