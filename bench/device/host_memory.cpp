// See host_memory.h. What files mean: proc(5), cgroups(7), and Linux's admin-guide/cgroup-v1/memory.rst and
// cgroup-v2.rst.
#include "bench/device/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// The two kinds of control groups that limit memory, and how each calls what it knows.
struct Hierarchy {
    std::string_view file_system, limit, used, inactive_cache, active_cache;
};
constexpr Hierarchy hierarchies[] = {
    {"cgroup2", "memory.max", "memory.current", "inactive_file", "active_file"},
    {"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"},
};

fs::path below(const fs::path& root, const std::string& path) { return root / fs::path(path).relative_path(); }

/// Nothing where the file does not begin with a number: it is not there, or says "max".
std::optional<std::int64_t> number_in(const fs::path& file) {
    std::ifstream stream(file);
    std::int64_t value = 0;
    if (stream >> value) return value;
    return std::nullopt;
}

/// The sum of what stands behind these names in a file of lines "name value"; 0 for those that it does not have.
std::int64_t named_in(const fs::path& file, std::string_view first, std::string_view second) {
    std::ifstream stream(file);
    std::int64_t sum = 0, value = 0;
    for (std::string key; stream >> key >> value;)
        if (key == first || key == second) sum += value;
    return sum;
}

std::int64_t machines_memory(const fs::path& root) {
    std::ifstream stream(root / "proc/meminfo");
    for (std::string line; std::getline(stream, line);) {
        std::istringstream words(line);
        std::string key;
        std::int64_t kib = 0;
        if (words >> key >> kib && key == "MemAvailable:") return kib * 1024;
    }
    // Without /proc what is free tells: less, as caches that would be given back are not in it.
    return std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

/// The lists that controllers and mount options are: "rw,memory".
bool lists(const std::string& list, std::string_view word) {
    std::istringstream stream(list);
    for (std::string one; std::getline(stream, one, ',');)
        if (one == word) return true;
    return false;
}

/// This process's group of the hierarchy: "4:memory:/jobs/7" or "0::/jobs/7" in /proc/self/cgroup.
std::optional<fs::path> own_group(const fs::path& root, const Hierarchy& hierarchy) {
    std::ifstream stream(root / "proc/self/cgroup");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
        if (controllers == std::string::npos || path == std::string::npos) continue;
        const std::string list = line.substr(controllers + 1, path - controllers - 1);
        if (hierarchy.file_system == "cgroup2" ? list.empty() : lists(list, "memory")) return line.substr(path + 1);
    }
    return std::nullopt;
}

/// Where a hierarchy can be read, and which of its groups is seen there.
struct Mount {
    fs::path group, point;
};

/// "31 23 0:28 /docker/7 /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory" in /proc/self/mountinfo.
std::optional<Mount> mount_of(const fs::path& root, const Hierarchy& hierarchy) {
    std::ifstream stream(root / "proc/self/mountinfo");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        std::istringstream before(line.substr(0, dash)), behind(line.substr(dash + 3));
        std::string id, parent, device, group, point, file_system, source, options;
        before >> id >> parent >> device >> group >> point;
        behind >> file_system >> source >> options;
        if (file_system == hierarchy.file_system && (file_system == "cgroup2" || lists(options, "memory")))
            return Mount{group, below(root, point)};
    }
    return std::nullopt;
}

/// What the group in this folder leaves; nothing where it has no limit.
std::optional<std::int64_t> left_in(const fs::path& folder, const Hierarchy& hierarchy) {
    const std::optional<std::int64_t> limit = number_in(folder / hierarchy.limit),
                                      used = number_in(folder / hierarchy.used);
    if (!limit || !used) return std::nullopt;
    const std::int64_t cache = named_in(folder / "memory.stat", hierarchy.inactive_cache, hierarchy.active_cache);
    return std::clamp<std::int64_t>(*limit - *used + cache, 0, *limit);
}

/// The least that this process's group and those above it leave.
std::int64_t groups_memory(const fs::path& root, const Hierarchy& hierarchy) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const std::optional<fs::path> own = own_group(root, hierarchy);
    const std::optional<Mount> mount = mount_of(root, hierarchy);
    if (!mount) return least;
    fs::path seen = own ? own->lexically_relative(mount->group) : fs::path();
    // A container sees its own group alone, at the point of the mount.
    if (seen.empty() || *seen.begin() == "..") seen = ".";
    fs::path folder = (mount->point / seen).lexically_normal();
    for (;; folder = folder.parent_path()) {
        if (!folder.has_filename()) folder = folder.parent_path();  // "point/." became "point/"
        if (const auto left = left_in(folder, hierarchy)) least = std::min(least, *left);
        if (folder == mount->point || folder == folder.parent_path()) return least;
    }
}

}  // namespace

std::int64_t available_host_memory(const fs::path& root) {
    std::int64_t available = machines_memory(root);
    for (const Hierarchy& hierarchy : hierarchies) available = std::min(available, groups_memory(root, hierarchy));
    return available;
}

}  // namespace kbench
