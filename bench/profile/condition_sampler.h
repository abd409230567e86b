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
#include "kbench/profile.h"

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

    /// Takes a reading, then one every machine.period() on a thread. Does nothing while it is already running.
    void start();

    /// Ends the thread, takes a last reading and gives the means since start(), and every reading that told something,
    /// those at start() and here among them; of more than most_readings, as many as that, evenly spread. Energy is the
    /// counter's difference, or an estimate from the mean power where there is no counter, it did not move, or the time
    /// since start() is less than 20 of its steps: so a counted energy is right within 5 %. Never throws for a machine
    /// that cannot be read: the figures are then unavailable with the reason. `throttled_samples` is the caller's to
    /// count.
    Conditions stop();

    /// The reasons in force now and at every reading since the last call; see discards_sample().
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

    std::optional<MachineReading> read();
    void run();
    void keep(const MachineReading& reading, double at_s);
    double seconds() const;
    Quantity energy(const std::optional<MachineReading>& last, const Mean& power_w, double seconds) const;
    void join();

    MachineState& machine_;
    std::thread thread_;
    std::mutex mutex_;  ///< guards what follows
    std::condition_variable wake_;
    bool stopping_ = false;
    Means means_;
    std::vector<ConditionReading> readings_;
    std::optional<MachineReading> first_;
    Clock::time_point started_;
    std::uint64_t seen_ = 0;        ///< reasons since start()
    std::uint64_t since_call_ = 0;  ///< reasons since the last throttle_mask_now()
    std::string failure_;           ///< text of the last reading that threw
};

}  // namespace kbench
