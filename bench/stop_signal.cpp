// See stop_signal.h.
#include "bench/stop_signal.h"

#include <csignal>

namespace kbench {
namespace {

constexpr int stopping[] = {SIGINT, SIGTERM};
volatile std::sig_atomic_t asked_by = 0;

void ask(int signal) {
    asked_by = signal;
    for (const int each : stopping) std::signal(each, SIG_DFL);
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
    for (const int signal : stopping) {
        struct sigaction now {};
        if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == ask) std::signal(signal, SIG_DFL);
    }
}

int StopSignals::asked() { return asked_by; }

}  // namespace kbench
