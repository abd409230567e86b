// What a measurement is at, for who watches and for the result.
#pragma once

#include <chrono>
#include <string>

#include "kbench/result.h"

namespace kbench {

/// Where progress goes; one line, rewritten. Quiet where that is asked for, or stderr is no terminal.
class Progress {
  public:
    explicit Progress(bool quiet = false);
    void show(const std::string& text);
    void clear();

  private:
    bool shows_;
    std::size_t shown_ = 0;
};

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
