// perf_event_open(2) and the small files around it, as Linux has them or as a test plays them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kbench {

/// One counter: the fields of the same names of perf_event_attr in perf_event_open(2).
struct PerfEventSpec {
    std::uint32_t type = 0;
    std::uint64_t config = 0, config1 = 0, config2 = 0;
    bool user_only = false;  ///< exclude_kernel and exclude_hv, which uncore PMUs refuse
    bool inherit = false;    ///< also counts the threads that the counted one starts from now on

    bool operator==(const PerfEventSpec&) const = default;
};

/// What read(2) gives with PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING, in that order. Times are
/// in ns; running is less than enabled where more events were wanted than there are counters.
struct PerfReading {
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

/// The few calls by which counters are found and read, so that tests can play any machine.
class PerfSystem {
  public:
    virtual ~PerfSystem() = default;
    /// perf_event_open(2) of a counter that counts at once: a file descriptor, or -errno. `pid` is a thread and `cpu`
    /// -1, or `pid` -1 and `cpu` one of those that the PMU's cpumask names.
    virtual int open(const PerfEventSpec& spec, int pid, int cpu) = 0;
    /// Bytes read, or -errno. Fewer bytes than a PerfReading has leave it undefined; 0 means that the event is broken.
    virtual long read(int fd, PerfReading& reading) = 0;
    virtual void close(int fd) noexcept = 0;
    /// A small file below /proc or /sys without white space at its end; none where it cannot be read.
    virtual std::optional<std::string> text(const std::filesystem::path& file) = 0;
    /// Names in a directory, sorted; empty where there is no such directory.
    virtual std::vector<std::string> entries(const std::filesystem::path& directory) = 0;
    virtual bool exists(const std::filesystem::path& path) = 0;
    /// Thread ids of this process.
    virtual std::vector<int> threads() = 0;
};

class LinuxPerfSystem final : public PerfSystem {
  public:
    /// Files are looked up below `root`; the system calls are the running kernel's.
    explicit LinuxPerfSystem(std::filesystem::path root = "/") : root_(std::move(root)) {}

    int open(const PerfEventSpec& spec, int pid, int cpu) override;
    long read(int fd, PerfReading& reading) override;
    void close(int fd) noexcept override;
    std::optional<std::string> text(const std::filesystem::path& file) override;
    std::vector<std::string> entries(const std::filesystem::path& directory) override;
    bool exists(const std::filesystem::path& path) override;
    std::vector<int> threads() override;

  private:
    std::filesystem::path root_;
};

}  // namespace kbench
