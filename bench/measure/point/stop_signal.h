// An orderly stop: SIGINT, SIGTERM and SIGHUP end a sweep with its finished points written, and anything else with a
// line.
#pragma once

#include "bench/measure/point/call_watch.h"

namespace kbench {

/// Call it at the start of the program. Where no StopSignals lives, such a signal then prints a line and ends the
/// program as it usually would. Files are whole at every moment, and caches too.
void tell_of_stop_signals();

/// While it lives, the first such signal only asks for a stop. A second one ends the process at once, if it comes
/// a second later or more: timeout(1) and terminals may send one signal twice. If a stop was asked for, this holds
/// after the object's end, too, as results are written then. If nobody calls asked() and no call
/// returns, as in a library that waits for ever, the process ends after WatchOptions::patience_s with a
/// line that names the call. One at a time.
class StopSignals {
  public:
    explicit StopSignals(WatchOptions watch = {});
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// The signal that asked for a stop, or 0. The caller then does what is to be done, however long that takes.
    static int asked();
    /// True some seconds after the signal: for work that is better finished than cut.
    static bool is_overdue();
    /// Where this process ends at once, as by a second signal, the process group `group` is killed; 0: none.
    static void end_too(int group);
    /// From here to end_too() a second signal waits, so that none ends this process before the group is known.
    static void hold();
    /// Protects what follows, such as saving weights, from a signal that comes during it.
    static void finish();

  private:
    CallWatch watch_;
};

/// Ends a point whose run was asked to stop.
struct Stopped {};

}  // namespace kbench
