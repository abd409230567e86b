// One point from its plan to its counters. The caller chooses what is computed and which of the parts are wanted: a
// model takes all of them (run.h), a single op some (micro/).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/result/result.h"
#include "bench/device/backend.h"
#include "bench/measure/sampler.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/data/weights.h"
#include "bench/plan/fuse.h"
#include "bench/plan/plan.h"

namespace kbench {

/// How much of everything.
struct PointOptions {
    SamplerOptions sampler;
    int step_runs = 11;     ///< instrumented runs for per-step times; medians are reported
    int activity_runs = 9;  ///< forwards in which every kernel is recorded; medians are reported
    double activity_warm_up_s = 1;
    double marginal_s = 3;  ///< time for the marginal costs of all op kinds; 0: none
    CounterRequest counters;
    int output_repeats = 4;  ///< further forwards whose outputs must have the bits of the first
    bool verify = true;
    std::uint64_t seed = 1;
};

/// Where progress goes; one line, rewritten. Quiet unless stderr is a terminal.
class Progress {
  public:
    Progress();
    void show(const std::string& text);
    void clear();

  private:
    bool terminal_;
    std::size_t shown_ = 0;
};

/// Adds the wall time of a scope to a named phase of the point, which must stay where it is meanwhile.
class PhaseTimer {
  public:
    PhaseTimer(Point& point, std::string phase) : point_(point), phase_(std::move(phase)) {}
    ~PhaseTimer() { point_.phase_seconds[phase_] += std::chrono::duration<double>(Clock::now() - start_).count(); }
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;

  private:
    using Clock = std::chrono::steady_clock;
    Point& point_;
    std::string phase_;
    Clock::time_point start_ = Clock::now();
};

/// Memory on paper as the providers announce it, before any computation is made.
Layout estimate_layout(const Model& model, Precision precision, const std::vector<AssignedStep>& steps);

/// Bytes of `backend` that a plan may take.
std::int64_t plannable_bytes(const Backend& backend);

/// Bytes of the backend's memory that a point with such a plan takes: on a CPU the outputs of two forwards are kept
/// beside it to be compared.
std::int64_t needed_bytes(const Model& model, const Layout& layout, const Backend& backend);

/// Fills in `point`, part by part, in the order of the functions. `label` stands before the name of each part in the
/// progress line. `between` is called before each part and within long ones; what it throws ends the part.
class PointRun {
  public:
    PointRun(const PointOptions& options, Backend& backend, Point& point, std::vector<std::string>& warnings,
             Progress& progress, std::string label, std::function<void()> between = {});

    /// Throws Unsupported when the plan does not fit into memory; `hint` then says, of so many bytes, what would.
    void plan(const Model& model, std::vector<AssignedStep> steps,
              const std::function<std::string(std::int64_t available)>& hint);
    /// Every distinct step against the reference. Throws MeasurementError.
    void verify();
    /// Weights, and the model's inputs from `files`, random where those name none.
    void load(WeightSource& weights, const FilesByName& files);
    /// End to end, every measurement that the backend has.
    void measure();
    void time_steps();
    /// The outputs are numbers, and the same in every run. `dumps`: also write these to .npy files.
    void check_outputs(const FilesByName& dumps);
    void record_kernels();
    void measure_marginal_costs();
    void count();
    void warn_of_other_precisions();

    const Plan& planned() const { return *plan_; }

  private:
    void step(const std::string& what);
    /// A warning that begins with which point it is of.
    void warn(std::string_view text);
    void check_output(TensorId id);
    void refuse_if_too_large(std::int64_t needed, const std::function<std::string(std::int64_t)>& hint) const;
    void describe_steps();

    const PointOptions& options_;
    Backend& backend_;
    Point& point_;
    std::vector<std::string>& warnings_;
    Progress& progress_;
    std::string label_;
    std::function<void()> between_;
    std::optional<Plan> plan_;
};

}  // namespace kbench
