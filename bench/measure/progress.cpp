// The line on the terminal.
#include "bench/measure/progress.h"
#include "bench/device/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace kbench {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
    if (!terminal_) return;
    say_text("\r" + without_controls(fmt::format("{:<{}}", text, shown_)));
    shown_ = text.size();
}

void Progress::clear() {
    if (!terminal_ || shown_ == 0) return;
    say_text(fmt::format("\r{:<{}}\r", "", shown_));
    shown_ = 0;
}

}  // namespace kbench
