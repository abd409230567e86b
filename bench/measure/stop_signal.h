// An orderly stop: SIGINT and SIGTERM end a sweep with its finished points written, and anything else with a line.
#pragma once

#include "bench/measure/call_watch.h"

namespace kbench {

/// At the start of the program: where nobody waits for SIGINT or SIGTERM (StopSignals), one line says that it stopped
/// the program, which then ends as it usually would. Files are whole at every moment, and caches too.
void tell_of_stop_signals();

/// While it lives, the first SIGINT or SIGTERM only asks for a stop; one that comes a second later or more ends the
/// process at once. Sooner it is the same wish: timeout(1) and terminals may send it more than once. So it stays after
/// the end of this where a stop was asked for, as results are written then; else all is as before. Where nobody asks
/// for the wish and no call returns either, as in a library that waits for ever, the process ends after
/// WatchOptions::patience_s with a line that names the call. One at a time.
class StopSignals {
  public:
    explicit StopSignals(WatchOptions watch = {});
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// The signal that asked, 0 before one did. Who asks does what is to be done then, however long that takes.
    static int asked();
    /// The same, some seconds after the signal: for work that is better ended than cut.
    static bool is_overdue();
    /// What follows, such as saving weights, is not to be cut short by a signal that comes during it.
    static void finish();

  private:
    CallWatch watch_;
};

/// Ends a point whose run was asked to stop.
struct Stopped {};

}  // namespace kbench
