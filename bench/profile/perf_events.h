// Inside of perf.h: events of perf_event_open(2) that add up to a figure, and why one does not open; for perf.cpp,
// which counts threads, and perf_memory.cpp, which counts memory traffic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/profile/perf_system.h"
#include "kbench/quantity.h"

namespace kbench::perf_events {

/// Where sysfs has one directory a PMU.
inline const std::filesystem::path pmus = "/sys/bus/event_source/devices";

/// The first CPU of /proc/cpuinfo; empty and zeros where that does not say.
struct Cpu {
    std::string vendor;
    std::uint64_t family = 0, model = 0;
};
Cpu read_cpu(PerfSystem& system);

/// Cycles of two kinds of core do not add up, and a plain event counts one kind only (perf_event_open(2), config).
bool hybrid(PerfSystem& system);
inline constexpr std::string_view is_hybrid = "this CPU has two kinds of core, and a plain event counts one of them";

// ---- Reasons

/// Who is counted decides what perf_event_paranoid must be at most (Documentation/admin-guide/perf-security.rst).
struct Scope {
    int paranoid;
    std::string_view what;
};
inline constexpr Scope own_threads{2, "its own threads"}, whole_machine{0, "memory controllers"};

/// Why perf_event_open failed with this errno, where `missing` says what it means that there is no such event.
std::string open_failure(PerfSystem& system, int error, const Scope& scope, std::string_view missing);

// ---- Events

/// Closes what PerfSystem::open() gave; the system must outlive it.
class PerfFd {
  public:
    PerfFd(PerfSystem& system, int fd) : system_(&system), fd_(fd) {}
    PerfFd(PerfFd&& other) noexcept : system_(other.system_), fd_(std::exchange(other.fd_, -1)) {}
    PerfFd& operator=(PerfFd&& other) noexcept {
        std::swap(system_, other.system_);
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~PerfFd() {
        if (fd_ >= 0) system_->close(fd_);
    }
    long read(PerfReading& reading) const { return system_->read(fd_, reading); }

  private:
    PerfSystem* system_;
    int fd_;
};

/// What the events of a sum count, as far as it decides which readings can be true.
struct EventRules {
    std::string_view name;
    bool of_threads;  ///< time stands still for an event whose thread sleeps; for one of a CPU it cannot
    bool may_be_zero;
};

/// Events of one kind on several CPUs or threads, which add up to one figure.
class EventSum {
  public:
    explicit EventSum(const EventRules& rules) : rules_(rules) {}

    void add(PerfFd fd, double scale) { events_.push_back({std::move(fd), scale, {}}); }
    bool empty() const { return events_.empty(); }
    std::size_t size() const { return events_.size(); }

    void start();
    /// The sum since start() of each count times its scale.
    Quantity stop();
    /// Seconds that the events were enabled between the last start() and stop(), summed: of events of threads, their
    /// time on a core.
    double enabled_s() const { return enabled_ns_ * 1e-9; }

  private:
    struct Event {
        PerfFd fd;
        double scale;
        PerfReading before;
    };

    /// Reads one event; where that fails, what is wrong stays in trouble_.
    bool take(const Event& event, PerfReading& reading);
    /// What one event adds; where it is not known, what is wrong stays in trouble_.
    double rise(const Event& event, const PerfReading& now);
    Quantity labelled(double sum) const;
    Quantity unavailable(std::string_view what) const;

    EventRules rules_;
    std::vector<Event> events_;
    std::string trouble_, start_trouble_ = "start() was not called";
    double enabled_ns_ = 0, running_ns_ = 0;
};

/// Adds an event for every thread of this process; 0, or the errno that says why not.
int open_threads(PerfSystem& system, PerfEventSpec spec, double scale, EventSum& sum);

// ---- Figures of several sums

/// `numerator` / `denominator` x `scale`; unavailable or estimated, with the reason, where one of them is.
Quantity quotient(const Quantity& numerator, const Quantity& denominator, double scale);
/// The sum; as unsure as the less sure part.
Quantity total(const Quantity& a, const Quantity& b);

}  // namespace kbench::perf_events
