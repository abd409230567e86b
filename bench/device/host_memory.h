// The host's memory that plans may count on. Reads /proc and control groups; knows no device.
#pragma once

#include <cstdint>
#include <filesystem>

namespace kbench {

/// Bytes that this process may still take: what the machine has left (MemAvailable), or what a control group leaves
/// where that is less: its own or one above it, of cgroup v1 or v2. Beyond a group's limit the kernel kills the
/// process. Files that the group has cached count as free, as they do in MemAvailable. `root`: in front of all paths,
/// for tests.
std::int64_t available_host_memory(const std::filesystem::path& root = "/");

}  // namespace kbench
