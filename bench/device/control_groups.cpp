// What the files mean: proc(5), proc_pid_mountinfo(5), cgroups(7).
#include "bench/device/control_groups.h"

#include <fstream>
#include <sstream>

namespace kbench {
namespace {

namespace fs = std::filesystem;

fs::path below(const fs::path& root, const std::string& path) { return root / fs::path(path).relative_path(); }

/// The lists that controllers and mount options are: "rw,memory".
bool lists(const std::string& list, std::string_view word) {
    std::istringstream stream(list);
    for (std::string one; std::getline(stream, one, ',');)
        if (one == word) return true;
    return false;
}

/// A path as mountinfo writes it: a space is "\040".
std::string unescaped(const std::string& text) {
    const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
    std::string path;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
            is_octal(text[i + 3])) {
            path += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            path += text[i];
        }
    }
    return path;
}

/// This process's group: "4:cpu,cpuacct:/jobs/7" or, of version 2, "0::/jobs/7" in /proc/self/cgroup.
std::optional<fs::path> own_group(const fs::path& root, bool unified, std::string_view controller) {
    std::ifstream stream(root / "proc/self/cgroup");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
        if (controllers == std::string::npos || path == std::string::npos) continue;
        const std::string list = line.substr(controllers + 1, path - controllers - 1);
        if (unified ? list.empty() : lists(list, controller)) return line.substr(path + 1);
    }
    return std::nullopt;
}

/// Where a hierarchy can be read, and which of its groups is seen there.
struct Mount {
    fs::path group, point;
};

/// `group` as it is called from the mount; nothing where it lies outside of what the mount shows.
std::optional<fs::path> seen_from(const Mount& mount, const std::optional<fs::path>& group) {
    const fs::path seen = group ? group->lexically_relative(mount.group) : fs::path();
    if (seen.empty() || *seen.begin() == "..") return std::nullopt;
    return seen;
}

/// "31 23 0:28 /docker/7 /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu" in /proc/self/mountinfo: the
/// first mount that shows `group`, else the first one.
std::optional<Mount> mount_of(const fs::path& root, bool unified, std::string_view controller,
                              const std::optional<fs::path>& group) {
    std::optional<Mount> first;
    std::ifstream stream(root / "proc/self/mountinfo");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        std::istringstream before(line.substr(0, dash)), behind(line.substr(dash + 3));
        std::string id, parent, device, shown, point, file_system, source, options;
        before >> id >> parent >> device >> shown >> point;
        behind >> file_system >> source >> options;
        if (unified ? file_system != "cgroup2" : file_system != "cgroup" || !lists(options, controller)) continue;
        const Mount mount{unescaped(shown), below(root, unescaped(point))};
        if (seen_from(mount, group)) return mount;
        if (!first) first = mount;
    }
    return first;
}

void add_groups(std::vector<ControlGroup>& groups, const fs::path& root, bool unified, std::string_view controller) {
    const std::optional<fs::path> own = own_group(root, unified, controller);
    const std::optional<Mount> mount = mount_of(root, unified, controller, own);
    if (!mount) return;
    // A container sees its own group alone, at the point of the mount.
    const fs::path seen = seen_from(*mount, own).value_or(".");
    fs::path folder = (mount->point / seen).lexically_normal();
    for (;; folder = folder.parent_path()) {
        if (!folder.has_filename()) folder = folder.parent_path();  // "point/." became "point/"
        groups.push_back({folder, unified});
        if (folder == mount->point || folder == folder.parent_path()) return;
    }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
    std::vector<ControlGroup> groups;
    for (const bool unified : {true, false}) add_groups(groups, root, unified, controller);
    return groups;
}

std::optional<std::int64_t> number_in(const fs::path& file) {
    std::ifstream stream(file);
    std::int64_t value = 0;
    if (stream >> value) return value;
    return std::nullopt;
}

}  // namespace kbench
