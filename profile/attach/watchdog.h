// Ends a process that hangs.
#pragma once

#include <chrono>
#include <string>

namespace kbench::attach {

/// The exit code of a process that was ended so, as timeout(1) has it.
inline constexpr int hung = 124;

/// Unless unwatch() is called within `most`, `why` becomes a note, the file is ended, and so is the process: at once,
/// as its other threads may wait for ever. One watch at a time.
void watch(std::chrono::milliseconds most, std::string why);
void unwatch();

}  // namespace kbench::attach
