// One kbench at a time writes into a folder.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

namespace kbench {

inline constexpr std::string_view lock_name = ".kbench.lock";

/// Holds the folder `out`, which is there, until its own end or that of the process, and removes what a killed one left
/// half-written in it. Throws UsageError when another process, or another lock of this one, holds it.
class FolderLock {
  public:
    explicit FolderLock(const std::filesystem::path& out);
    ~FolderLock();
    FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FolderLock& operator=(FolderLock&&) = delete;

  private:
    int descriptor_;
};

}  // namespace kbench
