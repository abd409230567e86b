// What a measurement is at, for who watches and for the result.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "kbench/result.h"

namespace kbench {

/// Where progress goes: one line on a terminal, rewritten; elsewhere, as in a log, a line every ten seconds. Nothing
/// where quiet is asked for.
class Progress {
  public:
    explicit Progress(bool quiet = false, std::chrono::milliseconds every = std::chrono::seconds(10));
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(const std::string& text);
    void clear();

  private:
    enum class Form { nothing, line, lines };
    void tell_in_lines(const std::stop_token& stop);

    Form form_;
    std::size_t shown_ = 0;
    std::chrono::milliseconds every_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
    std::condition_variable_any stopped_;
    std::string latest_;   ///< empty: nothing to tell
    std::jthread teller_;  ///< begins with the first text; ends before what it uses
};

/// "45 s", "8 min".
std::string rough_time(double seconds);

/// Adds the wall time of a scope to a named phase of the point, which must stay where it is meanwhile.
class PhaseTimer {
  public:
    PhaseTimer(Point& point, std::string phase) : point_(point), phase_(std::move(phase)) {}
    ~PhaseTimer() { point_.phase_seconds[phase_] += std::chrono::duration<double>(Clock::now() - start_).count(); }
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;

  private:
    using Clock = std::chrono::steady_clock;
    Point& point_;
    std::string phase_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace kbench
