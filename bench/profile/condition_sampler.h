// Reads the machine's state in the background while something is measured.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/profile/machine_state.h"
#include "kbench/records.h"

namespace kbench {

/// What a result keeps of the readings of one timing run.
inline constexpr std::size_t most_readings = 512;

/// At most `most` (two or more) of `readings`, evenly spread by their number, the first and the last among them.
std::vector<ConditionReading> thinned(std::vector<ConditionReading> readings, std::size_t most);

class ConditionSampler {
  public:
    /// `machine` must outlive the sampler.
    explicit ConditionSampler(MachineState& machine) : machine_(machine) {}
    ~ConditionSampler();
    ConditionSampler(const ConditionSampler&) = delete;
    ConditionSampler& operator=(const ConditionSampler&) = delete;

    /// Takes a reading, with which a window begins, then one every machine.period() on a thread. Does nothing while it
    /// is already running.
    void start();

    /// Begins the window anew, with a reading: what was read before, of a warm-up, does not count. Does nothing while
    /// it is not running.
    void begin_window();

    /// Ends the thread and the window after a last reading. Gives the means of the window and every reading that had a
    /// value, the first and the last among them. If there are more than most_readings, that many are kept, evenly
    /// spread. Never throws for a machine that cannot be read: the figures are then unavailable with the reason.
    /// `throttled_samples` is the caller's to count.
    ///
    /// Power is the energy counter's, from one of its steps to another, and energy that power times the window. When a
    /// step happened is known to the time between two readings; where that is more than 5 % of the time from step to
    /// step, or there is no counter, power is the mean of its readings and energy an estimate.
    Conditions stop();

    /// The reasons in force now and at every reading of the window since the last call; see discards_sample().
    std::uint64_t throttle_mask_now();

  private:
    using Clock = std::chrono::steady_clock;

    /// Mean of the readings that gave a value, with the reason of one that did not.
    struct Mean {
        double sum = 0;
        int count = 0;
        std::string why;
        void add(const Quantity& quantity);
        Quantity quantity() const;
    };
    struct Means {
        Mean sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
        void add(const MachineReading& reading);
    };

    /// What the energy counter stood at.
    struct Counted {
        double joules = 0;
        Clock::time_point at;
        double late_s = 0;  ///< for so long, at most, it may have stood there before
    };
    std::optional<MachineReading> read();
    void begin();
    void run();
    void keep(const MachineReading& reading, Clock::time_point at);
    void note_energy(const MachineReading& reading, Clock::time_point at);
    Quantity counted_power() const;  ///< or why the energy counter cannot tell
    void join();

    MachineState& machine_;
    std::thread thread_;
    std::mutex mutex_;  ///< guards what follows
    std::condition_variable wake_;
    bool stopping_ = false;
    Means means_;
    std::vector<ConditionReading> readings_;
    std::optional<MachineReading> first_;
    std::optional<Counted> last_counted_;  ///< in this window or before
    std::optional<Counted> from_, to_;     ///< the window's ends, at steps of the counter
    std::string no_counter_;               ///< why the last reading did not tell the energy
    Clock::time_point began_;              ///< the window
    std::uint64_t seen_ = 0;               ///< reasons in the window
    std::uint64_t since_call_ = 0;         ///< reasons since the last throttle_mask_now()
    std::string failure_;                  ///< text of the last reading that threw
};

}  // namespace kbench
