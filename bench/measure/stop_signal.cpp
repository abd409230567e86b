// See stop_signal.h.
#include "bench/measure/stop_signal.h"

#include <csignal>
#include <ctime>

namespace kbench {
namespace {

constexpr int stopping[] = {SIGINT, SIGTERM};
constexpr double same_wish_s = 1;
volatile std::sig_atomic_t asked_by = 0;
timespec asked_at{};

void ask(int signal) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (asked_by == 0) {
        asked_at = now;
        asked_by = signal;
        return;
    }
    const double since_s =
        static_cast<double>(now.tv_sec - asked_at.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - asked_at.tv_nsec);
    if (since_s < same_wish_s) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace

StopSignals::StopSignals() {
    asked_by = 0;
    struct sigaction action {};
    action.sa_handler = ask;
    action.sa_flags = SA_RESTART;  // reads and writes under way are not to fail
    sigemptyset(&action.sa_mask);
    for (const int signal : stopping) {
        struct sigaction before {};
        // What is ignored (nohup, a shell's background job) stays ignored.
        if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signal, &action, nullptr);
    }
}

StopSignals::~StopSignals() {
    if (asked_by != 0) return;  // the same wish may arrive once more while the results are being written
    for (const int signal : stopping) {
        struct sigaction now {};
        if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == ask) std::signal(signal, SIG_DFL);
    }
}

int StopSignals::asked() { return asked_by; }

}  // namespace kbench
