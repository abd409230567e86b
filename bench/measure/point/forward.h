// A plan made ready to be run on a device as often as wanted, and the ways to time it: end to end, step by step, with
// some steps run twice.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/plan.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// What is timed end to end. The headline is graph on a GPU and forward on a CPU.
enum class MeasurementKind { graph, forward, stream, enqueue, host_to_device, device_to_host };

/// What a measurement is called, and where its times stand in a result.
struct MeasurementRow {
    MeasurementKind kind;
    std::string_view name;
    Timing& (*timing)(EndToEnd& result);  ///< made where the result does not have it yet
};
std::span<const MeasurementRow> measurement_rows();
const MeasurementRow& row_of(MeasurementKind kind);

/// A way to take one chunk of samples of the same thing, in milliseconds.
struct Measurement {
    MeasurementKind kind;
    std::function<std::vector<double>()> chunk;
    double runs_per_sample = 1;  ///< more where not every run of a chunk becomes a sample
};

/// One time for each step, less what the marks themselves take: the time of an interval with nothing in it.
struct StepTimes {
    std::vector<double> us;
    double overhead_us = 0;
    double whole_us = 0;  ///< from the first mark to the last, less all marks; 0 where marks disturb the forward
};

/// The steps of `plan` put on the stream of `device`, which may be another one than the plan was allocated on where the
/// two share their memory. Both must outlive them.
std::vector<WorkRange> ranges_of(const Plan& plan, Device& device);
/// The same on a CPU by computations that are made now, for the threads that OpenMP has now, on the plan's memory.
/// Throws Unsupported where one of them wants weights in another layout.
std::vector<WorkRange> ranges_made_again(const Plan& plan, Device& device);

class Forward {
  public:
    /// Runs `plan`, which must be allocated, once on a GPU and captures it; tells `profiler` its steps, as ranges in
    /// their order. All of them must outlive it.
    Forward(const Plan& plan, Device& device, Profiler& profiler);
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;

    /// Every measurement that the device has, the headline first.
    std::vector<Measurement> measurements();
    /// Samples of the headline. Each is runs_a_sample() runs in a row, divided by their number, which grows where a
    /// sample was too short for the clock, and never shrinks.
    std::vector<double> chunk();
    /// Samples of a CPU's plan whose steps are runs of one thing. Each is runs_a_sample() steps in a row, the first
    /// again after the last, divided by their number, less what the marks themselves take.
    std::vector<double> chunk_of_steps();
    std::size_t runs_a_sample() const { return runs_a_sample_; }
    /// Times of all steps from one run of the whole plan with a mark between steps.
    StepTimes step_times();
    /// A way to take samples of what running every step of op kind `op` twice in a row adds to the forward,
    /// milliseconds: each is one such forward less the plain ones next to it.
    std::function<std::vector<double>()> doubled(std::string_view op);
    /// The whole plan, as it is timed.
    DeviceGraph& graph() { return *graph_; }

  private:
    bool needs_more_runs(const std::vector<double>& times_ms);
    std::vector<double> timed_chunk(bool once, const std::function<void()>& enqueue, std::size_t runs_a_mark = 1);
    std::vector<double> enqueue_chunk();
    std::vector<double> doubled_chunk(DeviceGraph& twice);
    void need_chunk_events(std::size_t count);

    const Plan& plan_;
    Device& device_;
    std::vector<WorkRange> steps_;
    WorkRange whole_;
    std::unique_ptr<DeviceGraph> graph_, step_graph_;
    std::size_t runs_a_sample_ = 1, next_step_ = 0;
    bool one_at_a_time_ = true;  ///< the device's own time cannot be told from the launch's, or need not be
    std::vector<std::unique_ptr<DeviceEvent>> step_events_, chunk_events_;
};

}  // namespace kbench
