// Work of known nature through the pipeline that a model goes through: timed, recorded, counted and explained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "bench/device/device.h"
#include "bench/measure/point/roof_watch.h"
#include "bench/measure/point/sampler.h"
#include "bench/profile/counters.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// A step of a forward that is no model's.
struct KnownStep {
    std::string layer;
    double flops = 0, bytes = 0;    ///< that it claims, FLOPs those of `precision`
    std::function<void()> enqueue;  ///< one kernel on the device's stream; on a CPU it computes
    Precision precision = Precision::fp32;
    bool is_matrix_product = false;  ///< its FLOPs are set against the roof of tensor cores
    /// The same with `factor` times the work, which claims as many times the FLOPs. Empty: its time against size is not
    /// measured.
    std::function<void(double factor)> at_size = {};
    std::string axis = "iterations";                        ///< what grows
    std::optional<std::int64_t> time_steps = std::nullopt;  ///< that wait for each other
    /// The same on the SMs and on the stream of a part of the GPU, or on the threads that OpenMP then has, for
    /// KnownBudget::theft_s.
    std::function<std::function<void()>(Device& part)> on_part = {};
};

/// How long to look at known work.
struct KnownBudget {
    SamplerOptions sampler;
    int activity_runs = 5;
    double activity_warm_up_s = 0.1;
    CounterRequest counters{.sets = {"core", "stalls", "pipes"}, .metrics = {}, .required = false};
    double size_scaling_s = 0.15;  ///< for steps with at_size
    bool graph_clock = false;      ///< whether the SMs' own clock is read between the steps of the graph
    /// For the work beside each thief, where all steps have on_part. Needs keep_parts() before anything is profiled.
    double theft_s = 0;
};
/// Enough for tests that look at one kernel each.
KnownBudget test_budget();

/// What was measured, and what follows from it. The explanation points into the result: both stay where they are.
struct KnownResult {
    std::unique_ptr<Result> result;
    Explanation explained;
    std::string unavailable;  ///< why nothing is explained: this machine records or counts nothing

    const StepResult& step(std::size_t i = 0) const { return result->points.front().steps[i]; }
};

/// A device, its profiler and its roofs.
class KnownSteps {
  public:
    /// `roofs` must be of `device`, which must outlive this.
    KnownSteps(Device& device, CeilingRun roofs);

    Device& device() const { return device_; }
    MachineState& machine_state() const { return profiler_->machine_state(); }
    const CeilingRun& roofs() const { return roofs_; }

    /// Times, records and counts `steps`, and explains them.
    KnownResult measure(const std::vector<KnownStep>& steps, const KnownBudget& budget) const;

  private:
    void time_at_sizes(Point& point, const std::vector<KnownStep>& steps, double seconds) const;
    void run_beside_thieves(Point& point, const std::vector<KnownStep>& steps, double seconds) const;
    void profile_on_gpu(Point& point, const std::vector<WorkRange>& ranges, DeviceGraph& forward,
                        const KnownBudget& budget) const;
    void profile_on_cpu(Point& point, const std::vector<WorkRange>& ranges, const KnownBudget& budget,
                        RoofWatch* roofs) const;

    Device& device_;
    std::unique_ptr<Profiler> profiler_;
    CeilingRun roofs_;
};

/// The roofs of `device`, measured in about `seconds`.
CeilingRun measured_roofs(Device& device, double seconds);

/// Every line of the time breakdown, and of one step with its evidence.
std::string account(const Explanation& explained, std::size_t step);

}  // namespace kbench
