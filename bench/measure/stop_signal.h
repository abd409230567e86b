// An orderly stop: SIGINT and SIGTERM end a sweep with its finished points written, and anything else with a line.
#pragma once

namespace kbench {

/// At the start of the program: where nobody waits for SIGINT or SIGTERM (StopSignals), one line says that it stopped
/// the program, which then ends as it usually would. Files are whole at every moment, and caches too.
void tell_of_stop_signals();

/// While it lives, the first SIGINT or SIGTERM only asks for a stop; one that comes a second later or more ends the
/// process at once. Sooner it is the same wish: timeout(1) and terminals may send it more than once. So it stays after
/// the end of this where a stop was asked for, as results are written then; else all is as before. One at a time.
class StopSignals {
  public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// The signal that asked, 0 before one did.
    static int asked();
};

}  // namespace kbench
