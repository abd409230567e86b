// The causes of a step's time, and a step's lines by them. causes.h computes them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/result/interval.h"

namespace kbench {

enum class Cause { useful, clock, main_loop, fixed, uneven, extra, dependency, gaps, unexplained };
inline constexpr std::size_t cause_count = static_cast<std::size_t>(Cause::unexplained) + 1;
constexpr Cause cause_at(std::size_t i) { return static_cast<Cause>(i); }

struct CauseInfo {
    std::string_view name;   ///< in tables and charts
    std::string_view brief;  ///< a few words beside the name
    std::string_view what;   ///< one sentence for a reader
    std::string_view how;    ///< what measures it
};
const CauseInfo& info(Cause cause);

/// Microseconds by cause.
struct CauseLines {
    std::array<Interval, cause_count> us{};
    Interval& operator[](Cause cause) { return us[static_cast<std::size_t>(cause)]; }
    const Interval& operator[](Cause cause) const { return us[static_cast<std::size_t>(cause)]; }
    double total_us() const;
    CauseLines& operator+=(const CauseLines& other);
};

/// One step's lines. They add up to its time without records and with the gap before it.
struct StepCauses {
    double time_us = 0;  ///< that time; 0: the step was not timed
    CauseLines lines;
    /// The same times at the clock of the run, so that the clock has no line: what a bottleneck is judged by.
    CauseLines at_run_clock;
    std::array<std::string, cause_count> changes;  ///< what would give a line back; empty where the line is
    std::string roof;                              ///< the useful work's, as RoofTime::name(); empty without one
    bool is_at_memory = false;                     ///< and it is a memory's
    std::string no_fit;                            ///< why its fixed time is not known; empty where it is
    /// What is not explained of it, without its sign, but not less than the misfit of its times by size.
    double misfit_us = 0;
};

}  // namespace kbench
