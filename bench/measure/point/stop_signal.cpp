// Handles the signals, and restores what they did before.
#include "bench/measure/point/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "bench/device/console.h"

namespace kbench {
namespace {

struct Stopping {
    int signal;
    std::string_view line;  ///< made beforehand: a handler may not
};
constexpr Stopping stopping[] = {{SIGINT, "\nkbench: stopped by SIGINT\n"},
                                 {SIGTERM, "\nkbench: stopped by SIGTERM\n"},
                                 {SIGHUP, "\nkbench: stopped by SIGHUP\n"}};
/// Whether a line of progress and an echoed ^C may stand there, which the first character of a line ends.
bool on_terminal = false;
constexpr double same_wish_s = 1, overdue_s = 5;
volatile std::sig_atomic_t asked_by = 0;
/// Whether the measurement has noticed the signal.
volatile std::sig_atomic_t noticed = 0;
timespec asked_at{};
/// The process group that ends with this process where it ends at once.
volatile std::sig_atomic_t group_to_end = 0;
/// Whether a second signal waits, and the one that does.
volatile std::sig_atomic_t held = 0, held_signal = 0;
/// What each signal did before StopSignals.
struct sigaction before[std::size(stopping)];

/// Before anything is written, as that may block.
void end_group() {
    if (group_to_end != 0) kill(-group_to_end, SIGKILL);
}

void end_with_a_line(int signal) {
    end_group();
    for (const Stopping& one : stopping) {
        if (one.signal != signal) continue;
        const std::string_view line = one.line.substr(on_terminal ? 0 : 1);
        if (write(STDERR_FILENO, line.data(), line.size()) < 0) break;  // nobody's loss
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

double seconds_since_asked() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec - asked_at.tv_sec) +
           1e-9 * static_cast<double>(now.tv_nsec - asked_at.tv_nsec);
}

void ask(int signal) {
    if (asked_by == 0) {
        clock_gettime(CLOCK_MONOTONIC, &asked_at);
        asked_by = signal;
        return;
    }
    if (seconds_since_asked() < same_wish_s) return;
    if (held != 0)
        held_signal = signal;
    else
        end_with_a_line(signal);
}

/// Runs in the thread of the watch, where more is allowed than in a handler.
void end_stuck(const std::string& call) {
    const int signal = asked_by;
    end_group();
    say("{}kbench: stopped by SIG{}{}\n", on_terminal ? "\n" : "", sigabbrev_np(signal),
        call.empty() ? std::string() : ": " + call);
    std::signal(signal, SIG_DFL);
    kill(getpid(), signal);
}

/// What is ignored (nohup, a shell's background job) stays ignored.
void handle(int signal, void (*handler)(int)) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return;
    now.sa_handler = handler;
    now.sa_flags = SA_RESTART;  // reads and writes under way are not to fail
    sigemptyset(&now.sa_mask);
    sigaction(signal, &now, nullptr);
}

}  // namespace

void tell_of_stop_signals() {
    on_terminal = isatty(STDERR_FILENO) == 1;
    for (const Stopping& one : stopping) handle(one.signal, end_with_a_line);
}

StopSignals::StopSignals(WatchOptions watch)
    : watch_(
          watch, [] { return asked_by != 0 && noticed == 0; }, end_stuck) {
    asked_by = 0;
    noticed = 0;
    for (std::size_t i = 0; i < std::size(stopping); ++i) {
        sigaction(stopping[i].signal, nullptr, &before[i]);
        handle(stopping[i].signal, ask);
    }
}

StopSignals::~StopSignals() {
    if (asked_by != 0) return;  // the same wish may arrive once more while the results are being written
    for (std::size_t i = 0; i < std::size(stopping); ++i) sigaction(stopping[i].signal, &before[i], nullptr);
}

int StopSignals::asked() {
    if (asked_by != 0) noticed = 1;
    return asked_by;
}

bool StopSignals::is_overdue() { return asked_by != 0 && seconds_since_asked() >= overdue_s; }

void StopSignals::end_too(int group) {
    group_to_end = group;
    held = 0;
    if (const int signal = held_signal; signal != 0) end_with_a_line(signal);
}

void StopSignals::hold() { held = 1; }

void StopSignals::finish() { noticed = 1; }

}  // namespace kbench
