// Runs a small GPT-2 on the CPU, or on a CPU that fails on request.
#include "tests/bench/small_run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/profile/machine_state.h"

namespace kbench {

namespace {

/// The machine's state, but not how much of the CPU this process gets: beside other work of a host that runs tests,
/// samples would be repeated and warned of.
class QuietHost final : public MachineState {
  public:
    explicit QuietHost(MachineState& machine) : machine_(machine) {}
    MachineReading read() override { return machine_.read(); }
    std::uint64_t throttle_mask() override { return machine_.throttle_mask(); }
    std::string throttle_unavailable() const override { return machine_.throttle_unavailable(); }
    void describe(GpuInfo& gpu) const override { machine_.describe(gpu); }
    std::chrono::milliseconds period() const override { return machine_.period(); }
    std::chrono::milliseconds energy_resolution() const override { return machine_.energy_resolution(); }

  private:
    MachineState& machine_;
};

class QuietProfiler final : public Profiler {
  public:
    void detach() override {}
    void watch(std::vector<WorkRange> ranges) override { profiler_->watch(std::move(ranges)); }
    RangeKernels record_kernels(DeviceGraph& all, int runs, double warm_up_s) override {
        return profiler_->record_kernels(all, runs, warm_up_s);
    }
    RangeTimes time_ranges(DeviceGraph& all, double seconds, const RecordedLaunches& around) override {
        return profiler_->time_ranges(all, seconds, around);
    }
    void check(const CounterRequest& request) const override { profiler_->check(request); }
    RangeCounters count(const CounterRequest& request) override { return profiler_->count(request); }
    std::vector<std::pair<std::string, Quantity>> probe_counters() override { return profiler_->probe_counters(); }
    MachineState& machine_state() override { return host_; }

  private:
    std::unique_ptr<Profiler> profiler_ = make_profiler(cpu());
    QuietHost host_{profiler_->machine_state()};
};

}  // namespace

Gpt2Config small_config() {
    Gpt2Config config{"small", 96, 3, 6};
    config.n_ctx = 64;
    config.vocab_size = 517;  // odd, as GPT-2's own
    return config;
}

Device& cpu() {
    static const std::unique_ptr<Device> device = make_cpu_device();
    return *device;
}

Profiler& cpu_profiler() {
    static QuietProfiler profiler;
    return profiler;
}

RunOptions small_run(const std::filesystem::path& out) {
    RunOptions options;
    options.model = gpt2_spec(small_config());
    options.values["seq"] = {33};
    options.values["batch"] = {2};
    options.out = out;
    options.cache_directory = out;
    options.sampler.warm_up_s = options.sampler.min_time_s = 0;
    options.sampler.time_budget_s = 0.05;
    options.sampler.min_samples = 3;
    options.step_runs = 1;
    options.marginal_s = 0.01;
    options.sm_scaling_s = options.size_scaling_s = options.theft_s = 0;
    return options;
}

}  // namespace kbench
