// The running kernel behind perf_system.h: perf_event_open(2), sysfs and the threads of this process.
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "bench/profile/perf.h"
#include "bench/profile/perf_text.h"

namespace kbench {

namespace fs = std::filesystem;

static_assert(sizeof(PerfReading) == 3 * sizeof(std::uint64_t));

int LinuxPerfSystem::open(const PerfEventSpec& spec, int pid, int cpu) {
    perf_event_attr attribute{};
    attribute.size = sizeof attribute;
    attribute.type = spec.type;
    attribute.config = spec.config;
    attribute.config1 = spec.config1;
    attribute.config2 = spec.config2;
    attribute.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attribute.exclude_kernel = attribute.exclude_hv = spec.user_only;
    attribute.inherit = spec.inherit;
    const long fd = syscall(SYS_perf_event_open, &attribute, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd >= 0 ? static_cast<int>(fd) : -errno;
}

long LinuxPerfSystem::read(int fd, PerfReading& reading) {
    const long bytes = ::read(fd, &reading, sizeof reading);
    return bytes >= 0 ? bytes : -errno;
}

void LinuxPerfSystem::close(int fd) noexcept { ::close(fd); }

std::optional<std::string> LinuxPerfSystem::text(const fs::path& file) {
    std::ifstream stream(root_ / file.relative_path());
    if (!stream) return std::nullopt;
    std::string content;
    std::array<char, 4096> block;
    while (stream.read(block.data(), block.size()), stream.gcount() > 0)
        content.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    return stream.bad() ? std::nullopt : std::optional(std::string(perf_text::trim(content)));
}

std::vector<std::string> LinuxPerfSystem::entries(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(root_ / directory.relative_path(), error), end; !error && entry != end;
         entry.increment(error))
        names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

bool LinuxPerfSystem::exists(const fs::path& path) {
    std::error_code error;
    return fs::exists(root_ / path.relative_path(), error);
}

std::vector<int> LinuxPerfSystem::threads() {
    std::vector<int> ids;
    for (const std::string& name : entries("/proc/self/task"))
        if (const auto id = perf_text::parse_integer(name)) ids.push_back(static_cast<int>(*id));
    return ids;
}

}  // namespace kbench
