// The line on the terminal.
#include "bench/measure/point/progress.h"
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

Progress::Progress(bool quiet, std::chrono::milliseconds every)
    : form_(quiet                        ? Form::nothing
            : isatty(STDERR_FILENO) == 1 ? Form::line
                                         : Form::lines),
      every_(every) {}

Progress::~Progress() = default;

void Progress::show(const std::string& text) {
    if (form_ == Form::nothing) return;
    if (form_ == Form::lines) {
        const std::lock_guard lock(mutex_);
        latest_ = text;
        if (!teller_.joinable()) teller_ = std::jthread([this](const std::stop_token& stop) { tell_in_lines(stop); });
        return;
    }
    const std::string fits = text.substr(0, room());
    say_text("\r" + without_controls(fmt::format("{:<{}}", fits, std::min(shown_, room()))));
    shown_ = fits.size();
}

void Progress::clear() {
    if (form_ == Form::lines) {
        const std::lock_guard lock(mutex_);
        latest_.clear();
    }
    if (form_ != Form::line || shown_ == 0) return;
    say_text(fmt::format("\r{:<{}}\r", "", std::min(shown_, room())));
    shown_ = 0;
}

void Progress::tell_in_lines(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, stop, every_, [&stop] { return stop.stop_requested(); })) {
        if (latest_.empty()) continue;
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        say_text(without_controls(fmt::format("{}, {} so far\n", latest_, rough_time(seconds))));
    }
}

std::string rough_time(double seconds) {
    return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace kbench
