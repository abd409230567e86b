// Which files a checkpoint consists of: a path may name one .safetensors file, the index of several (its shards), or a
// folder that holds either.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kbench {

struct CheckpointFiles {
    std::filesystem::path index;               ///< empty without one
    std::vector<std::filesystem::path> files;  ///< .safetensors, by name
    /// What the index says: of each tensor the file, as one of `files`.
    std::map<std::string, std::filesystem::path, std::less<>> file_of;
};

/// Throws UsageError, one line that begins with the path: a folder without a checkpoint or with several, an index that
/// is none, names a tensor twice, a shard outside its folder or one that is not there.
CheckpointFiles checkpoint_files(const std::filesystem::path& path);

/// An index, `text`, which lies at `path`.
CheckpointFiles parse_checkpoint_index(const std::string& text, const std::filesystem::path& path);

/// The files that `path` stands for, its index first; itself where they cannot be told, which its reader says.
std::vector<std::filesystem::path> files_of_checkpoint(const std::filesystem::path& path);

/// How a checkpoint is called in results: the last part of its path.
std::string checkpoint_name(const std::filesystem::path& path);

}  // namespace kbench
