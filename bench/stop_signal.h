// An orderly stop: SIGINT and SIGTERM end a sweep with its finished points written.
#pragma once

namespace kbench {

/// While it lives, the first SIGINT or SIGTERM only asks for a stop; the second ends the process as it usually would.
/// One at a time.
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
