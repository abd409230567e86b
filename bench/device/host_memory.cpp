// Reads the host's free memory. What files mean: proc(5), cgroups(7), and Linux's admin-guide/cgroup-v1/memory.rst and
// cgroup-v2.rst.
#include "bench/device/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "bench/device/control_groups.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// How each version of control groups calls what it knows of memory.
struct Names {
    std::string_view limit, used, inactive_cache, active_cache;
};
constexpr Names unified_names{"memory.max", "memory.current", "inactive_file", "active_file"};
constexpr Names v1_names{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};

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

/// What this group leaves; nothing where it has no limit.
std::optional<std::int64_t> left_in(const ControlGroup& group) {
    const Names& names = group.unified ? unified_names : v1_names;
    const std::optional<std::int64_t> limit = number_in(group.folder / names.limit),
                                      used = number_in(group.folder / names.used);
    if (!limit || !used) return std::nullopt;
    const std::int64_t cache = named_in(group.folder / "memory.stat", names.inactive_cache, names.active_cache);
    return std::clamp<std::int64_t>(*limit - *used + cache, 0, *limit);
}

}  // namespace

std::int64_t available_host_memory(const fs::path& root) {
    std::int64_t available = machines_memory(root);
    for (const ControlGroup& group : control_groups("memory", root))
        if (const auto left = left_in(group)) available = std::min(available, *left);
    return available;
}

}  // namespace kbench
