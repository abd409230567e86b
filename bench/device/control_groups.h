// The control groups (cgroups) that limit this process, of both versions. Reads /proc and the folders of groups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

/// One group's folder, and of which version its files are.
struct ControlGroup {
    std::filesystem::path folder;
    bool unified = false;  ///< cgroup v2, where all controllers share one hierarchy
};

/// The groups of this process that can limit by `controller` (cpu, memory): of cgroup v2 its own and all above it that
/// are seen, then the same of cgroup v1. A host may have both mounted; the files of a controller are in one of them.
/// Empty where no group is seen. `root` stands in front of all paths, for tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

/// The number that a group's file begins with; nothing where it is not there or says "max".
std::optional<std::int64_t> number_in(const std::filesystem::path& file);

}  // namespace kbench
