// The parts of a measurement; measure.cpp has their order. Each fills in its own fields of the point.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/measure/point/forward.h"
#include "bench/measure/point/point_options.h"
#include "bench/measure/point/roof_watch.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/data/weights.h"
#include "bench/plan/plan.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// What every part works on, and how much of it is wanted.
struct PartContext {
    Plan& plan;  ///< made of `point` by plan_point
    Device& device;
    Profiler& profiler;
    const PointOptions& options;
    WeightSource& weights;
    Point& point;
    std::vector<std::string>& warnings;  ///< get a line for what makes figures less than they could be
    FilesByName inputs = {};             ///< the model's; those without a file are random
    /// What verification found before, of the same computations: it is not done again.
    std::optional<Verification> verified = {};
    /// Takes the samples and fills in point.end_to_end; empty: as sample_end_to_end does.
    std::function<void(Forward& forward)> sample = {};
    /// The machine's, of which a thief takes shares; without them there is no theft.
    Roofs roofs = {};
    FilesByName dumps = {};                     ///< also write these outputs to .npy files
    std::filesystem::path dump_gradients = {};  ///< also write the weights' gradients there, by the weights' names
    /// Called with a part's name before it begins, and again within long ones; what it throws ends the measurement.
    std::function<void(const std::string& part)> on_part = {};

    void begin(const std::string& part) const {
        if (on_part) on_part(part);
    }
    /// Where the numbers of the model's input come from; empty: they are random.
    std::filesystem::path file_of(TensorId input) const;
    /// A warning that begins with which point it is of.
    void warn(std::string_view text) const;
    /// Throws DeviceError where the device is lost, not where something could merely not be recorded or counted.
    void require_device() const;
};

// prepare.cpp
/// Checks every distinct step against the reference, unless that is not wanted or done. Throws MeasurementError.
void verify(const PartContext& at);
void load(const PartContext& at);
std::unique_ptr<Forward> prepare(const PartContext& at);

// end_to_end.cpp
/// Takes every measurement that the device has, and reads the machine's state while the headline is sampled. `roofs`
/// may be null.
void sample_end_to_end(const PartContext& at, Forward& forward, RoofWatch* roofs);

// step_times.cpp
void time_steps(const PartContext& at, Forward& forward, RoofWatch* roofs);
/// Samples op kinds in turn, so that what drifts in time does not meet one of them alone. Takes no samples where the
/// time allows too few of each for an interval.
void measure_marginal_costs(const PartContext& at, Forward& forward);
/// Measures where time steps spend their time, by clocks in their kernels.
void account_for_steps(const PartContext& at);

// check_outputs.cpp
/// Checks that a forward's outputs are finite numbers, and the same ones however often it runs.
void check_outputs(const PartContext& at, Forward& forward);

// profiled.cpp
/// Where kernels cannot be recorded or counted, the point says why, and its timing stands alone. Both throw where the
/// device is lost meanwhile, as nothing can be measured after that.
void record_kernels(const PartContext& at, Forward& forward);
void count(const PartContext& at);

// graph_clock.cpp
/// Reads the SMs' clock between the steps of graphs that are not timed. None on a CPU.
void measure_graph_clock(const PartContext& at, Forward& forward);

// experiment_time.cpp
/// Seconds that PointOptions::experiments_s leaves the experiments which have not ended yet; infinite on a GPU.
double experiments_left_s(const PartContext& at);

// sm_scaling.cpp
/// Whether work can be run on a part of the device: not where it is a part itself, nor where a GPU's records cannot be
/// taken, of which the point says so already.
bool can_divide(const PartContext& at);
/// Runs the forward again on 3/4, 1/2 and 1/4 of a GPU's SMs, with every kernel recorded, or on 3/4 and 1/2 of a CPU's
/// threads.
void measure_sm_scaling(const PartContext& at, Forward& forward);

// size_scaling.cpp
/// Runs each distinct step by itself at its own size and at larger ones, without a profiler.
void measure_size_scaling(const PartContext& at);

// theft.cpp
/// Runs the forward again on most of a GPU's SMs while a thief on the others takes bandwidth, with every kernel
/// recorded; on a CPU on threads whose cores leave a thief some.
void measure_theft(const PartContext& at);

// profiled.cpp
/// Writes one line for all steps of an op that did not run in the precision asked for.
void warn_of_other_precisions(const PartContext& at);

}  // namespace kbench
