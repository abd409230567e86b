// Measures one microbenchmark after another on one device, and repeats them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "bench/measure/point/measure.h"
#include "bench/measure/point/progress.h"
#include "bench/micro/cases.h"
#include "bench/plan/data/weights.h"
#include "kbench/result.h"

namespace kbench {

/// How many sets of operands the runs of a microbenchmark go round, and how many runs one launch holds.
struct RunShape {
    std::int64_t sets = 1, runs = 1;
};
/// `set_bytes` of operands, `cache_bytes` of caches that a cold run must not find them in: the sets together exceed
/// them three times. One launch takes `launch_us` or more at the least time of a run, and goes round the sets a whole
/// number of times. Throws Unsupported where that takes more than `most_runs`.
inline constexpr std::int64_t most_runs = 2048;
RunShape run_shape(CacheState cache, double set_bytes, double cache_bytes, double least_run_us, double launch_us);

/// The columns of a microbenchmark, without its time.
struct MicroFigures {
    double tflop_per_s = 0, gb_per_s = 0;  ///< FLOPs and unfused traffic of the cost model over the median time
    /// Share of the binding roof, 0 to 1, and its ceiling's name; nothing without roofs.
    std::optional<double> roof_share;
    std::string roof;
    /// Per run, from hardware counters; nothing where they were not read.
    std::optional<double> achieved_occupancy_pct, dram_bytes, executed_flops;
    std::optional<double> relative_ci;  ///< half-width of the median's 95 % interval over the median, where it has one
    /// Mean while timing, of a GPU's SMs or the CPU's cores; nothing where it cannot be read.
    std::optional<double> clock_mhz;
};

/// Figures of a point of one step that takes `time`, milliseconds.
MicroFigures micro_figures(const Point& point, const Summary& time, const Roofs& roofs, CacheState cache);

/// Makes of a point whose steps are runs of the same step the point of one run: sums and times divided by their number,
/// counters their mean, each kernel's time the median. End to end is the caller's.
void fold_runs(Point& point);

/// For a hot point whose operands fit in the caches: DRAM traffic that was only estimated becomes none, with the
/// reason. What was counted stays.
void expect_no_traffic(Point& point, double set_bytes, double cache_bytes);

class MicroSession {
  public:
    /// Points go to `result`, whose ceilings are the roofs; each benchmark times `device_s` of runs at the least. All
    /// of them must outlive the session; `profiler` and `providers` are those of the device. `quiet`: no progress.
    MicroSession(const PointOptions& options, Device& device, Profiler& profiler, Providers& providers, Result& result,
                 double device_s, bool quiet = false);

    /// Whether hardware counters are asked for that a GPU has; a CPU's may be missing.
    bool counts() const { return device_.is_gpu() && !options_.counters.nothing(); }
    /// Whether the machine tells its clock; a virtual machine's CPU rarely does.
    bool has_clock() const { return profiler_.machine_state().read().sm_clock_mhz.value.has_value(); }
    bool device_is_lost() const { return !why_lost(device_).empty(); }
    /// Measures `micro` and gives its columns. It is planned, verified, loaded and warm when `repetition` is called,
    /// which takes samples by sample(); then its kernels and counters are recorded. A benchmark that is the current one
    /// already is only sampled again. Throws Unsupported where it cannot be computed (the point is recorded as
    /// skipped), MeasurementError where it computes something else (recorded as failed).
    MicroFigures measure(const MicroCase& micro, const std::function<void()>& repetition);
    /// Runs for about the interval that the sampler is to reach, and device_s; or `runs`, where that is more than one.
    /// A benchmark that was planned before gets as many as then, however many runs now make a sample: Google Benchmark
    /// ends the process where repetitions differ in length, also where others have been measured between them.
    std::size_t planned_runs(std::size_t runs);
    std::size_t runs_a_sample() const { return runs_a_launch_ * (forward_ == nullptr ? 1 : forward_->runs_a_sample()); }
    /// Takes samples of the current one until it has run so often, adds them to its point and gives the median of one
    /// run, seconds.
    double sample(std::size_t runs);
    const Point& point() const { return result_.points[*current_point_]; }
    const Result& result() const { return result_; }

  private:
    /// The current benchmark's plan, and what it is made of: each needs those before it.
    struct Current {
        std::string name;
        CacheState cache = CacheState::cold;
        double set_bytes = 0;
        std::unique_ptr<Model> model;
        std::optional<Plan> plan;
        Measured measured;
    };

    void begin_point(const MicroCase& micro);
    void measure_new(const MicroCase& micro, const std::function<void()>& repetition);
    RunShape plan(const MicroCase& micro);
    /// A first few samples, from which follows how many are needed.
    void take_pilot();
    /// Notes what a sample took by the clock on the wall, too.
    std::vector<double> chunk();
    std::vector<double> untimed_chunk();
    Sampled take(const SamplerOptions& sampler);
    void warn_of_starvation(const CpuShare& share);
    void fold();
    Point& current_point() { return result_.points[*current_point_]; }

    PointOptions options_;
    const double device_s_;
    Device& device_;
    Profiler& profiler_;
    Result& result_;
    Roofs roofs_;
    Providers& providers_;
    Progress progress_;
    std::map<std::string, Verification> verified_;  ///< by op, shape, provider, precision, implementation
    std::string contents_of_;                       ///< op and shape whose operands contents_ has drawn
    std::unique_ptr<WeightSource> contents_;
    Current current_;
    std::optional<std::size_t> current_point_;
    Forward* forward_ = nullptr;  ///< the current one's, from its first sample on
    Timing before_;               ///< samples of the current point's earlier repetitions
    std::size_t runs_a_launch_ = 1;
    std::map<std::string, std::size_t> planned_;                         ///< runs, by benchmark
    double sample_wall_s_ = 0, sample_device_s_ = 0, pilot_spread_ = 0;  ///< between quartiles, over the median
    bool warned_of_starvation_ = false;
    Summary last_ms_;  ///< the current one's last samples
};

}  // namespace kbench
