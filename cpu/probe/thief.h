// Threads of their own on cores that the work does not use: they take memory bandwidth there, or only compute, or
// sleep. x86-64 only.
//
//     ThiefThreads thief({6, 7});
//     thief.start(Theft::stores, 5e9);
//     ...                        // work on the other cores
//     thief.bytes();             // what they have stored since
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace kbench::cpu {

/// compute: multiply-adds in registers. stores: whole lines past the caches, so that each goes to the memory, whatever
/// the size of the buffer, and nothing that the work has in a cache is evicted.
enum class Theft { nothing, compute, stores };

class ThiefThreads {
  public:
    /// Returns "" where this CPU has the loops, else why not.
    static std::string unavailable();

    /// One thread on each of `cpus`, with nothing to do yet. Throws DeviceError where they cannot be kept there.
    explicit ThiefThreads(const std::vector<int>& cpus);
    ~ThiefThreads();  ///< ends them
    ThiefThreads(const ThiefThreads&) = delete;
    ThiefThreads& operator=(const ThiefThreads&) = delete;

    /// All together store so many bytes a second, or as many as they can for 0, until the next call or for `longest`.
    /// Returns when all have begun; throws DeviceError where one of them does not come to it.
    void start(Theft what, double bytes_per_s, std::chrono::nanoseconds longest);

    double bytes() const;  ///< that all have stored so far
    /// Whether `longest` is not over since the last start.
    bool is_running() const { return Clock::now() < end_.load(); }

  private:
    using Clock = std::chrono::steady_clock;

    struct alignas(64) Member {
        std::atomic<std::int64_t> bytes{0};
        std::atomic<unsigned> begun{0};  ///< the last order that it follows
        bool pinned = false;
        std::thread thread;
    };

    void run(Member& member, int cpu);
    void follow(Member& member, unsigned order, double* buffer);
    bool is_current(unsigned order) const;
    void wait_until_begun(unsigned order);
    void end_all();

    std::vector<Member> members_;
    std::atomic<unsigned> order_{0};  ///< counts up with each; written after what it says
    std::atomic<Theft> what_{Theft::nothing};
    std::atomic<double> bytes_per_ns_{0};  ///< what each of them is to store
    std::atomic<Clock::time_point> end_{};
    std::atomic<bool> ends_{false};
};

/// Bytes a second that threads on all of `cpus` store past the caches together, the highest of some looks of
/// `seconds` in all. Throws as ThiefThreads.
double stored_bytes_per_s(const std::vector<int>& cpus, double seconds);

}  // namespace kbench::cpu
