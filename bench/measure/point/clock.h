// How fine a clock is, and how many runs a sample needs so that it is fine enough.
#pragma once

#include <cstddef>

namespace kbench {

/// A sample shorter than so many ticks of its clock says more of the clock than of the work.
inline constexpr double least_ticks = 100;

/// The shortest time that can be told from none, milliseconds. For a CPU it is the shortest time between two readings
/// that differ, measured once; for a GPU's events it is what CUDA's documentation of cudaEventElapsedTime states.
double clock_tick_ms(bool of_gpu);

/// How many runs a sample needs when one of `runs` runs took `run_ms` for each of them: `runs` where they lasted for
/// least_ticks, else more, and at most 2^20.
std::size_t runs_for_clock(double run_ms, std::size_t runs, double tick_ms);

}  // namespace kbench
