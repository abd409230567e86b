// The line on the terminal.
#include "bench/measure/progress.h"
#include "bench/device/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace kbench {
namespace {

/// The longest line. In the last column some terminals go to the next line, and "\r" would not come back.
std::size_t room() {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::string::npos;
    return std::max<std::size_t>(size.ws_col, 2) - 1;
}

}  // namespace

Progress::Progress(bool quiet) : shows_(!quiet && isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
    if (!shows_) return;
    const std::string fits = text.substr(0, room());
    say_text("\r" + without_controls(fmt::format("{:<{}}", fits, std::min(shown_, room()))));
    shown_ = fits.size();
}

void Progress::clear() {
    if (!shows_ || shown_ == 0) return;
    say_text(fmt::format("\r{:<{}}\r", "", std::min(shown_, room())));
    shown_ = 0;
}

}  // namespace kbench
