// The line on the terminal.
#include "bench/measure/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace kbench {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
    if (!terminal_) return;
    fmt::print(stderr, "\r{:<{}}", text, shown_);
    std::fflush(stderr);
    shown_ = text.size();
}

void Progress::clear() {
    if (!terminal_ || shown_ == 0) return;
    fmt::print(stderr, "\r{:<{}}\r", "", shown_);
    std::fflush(stderr);
    shown_ = 0;
}

}  // namespace kbench
