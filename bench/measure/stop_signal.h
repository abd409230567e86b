// An orderly stop: SIGINT and SIGTERM end a sweep with its finished points written.
#pragma once

namespace kbench {

/// While it lives, the first SIGINT or SIGTERM only asks for a stop; one that comes a second later or more ends the
/// process as it usually would. Sooner it is the same wish: timeout(1) and terminals may send it more than once. So it
/// stays after the end of this where a stop was asked for, as results are written then. One at a time.
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
