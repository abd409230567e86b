// A sweep: every point planned, verified, timed and on disk before the next one starts.
#pragma once

#include <string>

#include "bench/device/device.h"
#include "bench/measure/point/point_spec.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/store/point_store.h"
#include "bench/measure/sweep/run_options.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// What decides, before each point, whether it is measured, and what it is called meanwhile.
class PointGate {
  public:
    virtual ~PointGate() = default;
    /// Why the point is not to be measured; empty where it is. Called once for each that is not finished.
    virtual std::string leave_out(const PointSpec& spec) = 0;
    /// In front of what the point is at: "batch 3/18, 4 min left".
    virtual std::string label(const PointSpec& spec) const = 0;
    /// `point` was measured, or had been by an earlier run.
    virtual void finished(const PointSpec& spec, const Point& point) = 0;
};

/// Why a sweep ended before its last point.
struct SweepEnd {
    int signal = 0;           ///< that asked for it
    std::string device_lost;  ///< the error after which the device answered no more
    bool early() const { return signal != 0 || !device_lost.empty(); }
};

/// Measures all points in the order of options.points(), but for those that are `finished`, and appends each to
/// `result`. Each point is in `store` before the next one starts. What the device cannot do is a point that was
/// skipped, what went wrong a point that failed, with the reason; the sweep goes on. A batch asked for as "max" that
/// does not run is tried again smaller, with a warning. At the end result.json and the tables are in options.out.
///
/// UsageError ends it at once: a mistake is no measurement. An end that comes early is told in `result.warnings`.
/// `gate`: which points are left out; those are not in the result.
SweepEnd run_points(const RunOptions& options, Device& device, Profiler& profiler, Result& result, Progress& progress,
                    const PointStore& store, FinishedPoints finished = {}, PointGate* gate = nullptr);

/// The same into a directory without finished points.
inline SweepEnd run_points(const RunOptions& options, Device& device, Profiler& profiler, Result& result,
                           Progress& progress) {
    return run_points(options, device, profiler, result, progress, PointStore(options.out));
}

/// Throws UsageError where run_points would: for names, weights and tokens. Computes nothing.
void refuse_points(const RunOptions& options, Device& device);

}  // namespace kbench
