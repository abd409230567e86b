// What this machine remembers of how much runs differ: a file in the cache directory, by machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// Where it is remembered below a cache directory.
std::filesystem::path noise_file(const std::filesystem::path& cache_directory);

/// What it is valid for: this GPU with its driver, or this CPU with so many threads.
std::string noise_key(const Environment& environment);

/// Nothing where the file is missing or has none of this machine; where it is not ours, a warning too.
std::optional<RunToRun> remembered_noise(const std::filesystem::path& file, const Environment& environment,
                                         std::vector<std::string>& warnings);

/// Throws UsageError where the file cannot be written. A file that is not ours is replaced.
void remember_noise(const std::filesystem::path& file, const Environment& environment, const RunToRun& noise);

}  // namespace kbench
