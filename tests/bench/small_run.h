// Whole runs that take milliseconds: a small GPT-2 on the CPU, or on a CPU that fails as a test wants it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "bench/measure/run.h"
#include "models/gpt2.h"

namespace kbench {

inline Gpt2Config small_config() {
    Gpt2Config config{"small", 96, 3, 6};
    config.n_ctx = 64;
    config.vocab_size = 517;  // odd, as GPT-2's own
    return config;
}

inline Backend& cpu() {
    static const std::unique_ptr<Backend> backend = make_cpu_backend();
    return *backend;
}

inline RunOptions small_run(const std::filesystem::path& out) {
    RunOptions options;
    options.model = gpt2_spec(small_config());
    options.attention = "fused";
    options.seqs = {33};
    options.batches = {2};
    options.out = out;
    options.cache_directory = out;
    options.sampler.warm_up_s = options.sampler.min_time_s = 0;
    options.sampler.time_budget_s = 0.05;
    options.sampler.min_samples = 3;
    options.step_runs = 1;
    options.marginal_s = 0.01;
    return options;
}

/// The CPU, but for what a test says otherwise.
class OtherBackend final : public Backend {
  public:
    std::function<StepCounters(std::size_t steps)> count_steps;
    std::function<void(std::size_t bytes)> before_allocate;  ///< may throw
    std::function<void()> before_prepare;                    ///< may throw
    std::optional<std::int64_t> all_memory;                  ///< all that there is, instead of the machine's
    bool apart = false;                                      ///< the host cannot see its memory, as a GPU's
    std::size_t largest_download = 0;

    BackendKind kind() const override { return cpu().kind(); }
    void* allocate(std::size_t bytes) override {
        if (before_allocate) before_allocate(bytes);
        return cpu().allocate(bytes);
    }
    void release(void* memory) noexcept override { cpu().release(memory); }
    std::int64_t free_bytes() const override { return all_memory.value_or(cpu().free_bytes()); }
    void upload(void* to, const void* from, std::size_t bytes) override { cpu().upload(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override {
        largest_download = std::max(largest_download, bytes);
        cpu().download(to, from, bytes);
    }
    void fill_bytes(void* memory, int value, std::size_t bytes) override { cpu().fill_bytes(memory, value, bytes); }
    void* host_view(void* memory) override { return apart ? nullptr : cpu().host_view(memory); }
    void* stream() override { return nullptr; }
    void synchronize() override {}
    void prepare(const Plan& plan) override {
        if (before_prepare) before_prepare();
        steps_ = plan.steps().size();
        cpu().prepare(plan);
    }
    std::vector<Measurement> measurements() override { return cpu().measurements(); }
    StepTimes step_times() override { return cpu().step_times(); }
    StepKernels record_kernels(int runs, double warm_up_s) override { return cpu().record_kernels(runs, warm_up_s); }
    std::function<std::vector<double>()> doubled(std::string_view op) override { return cpu().doubled(op); }
    void check(const CounterRequest&) const override {}
    StepCounters count(const CounterRequest& request) override {
        return count_steps ? count_steps(steps_) : cpu().count(request);
    }
    std::vector<std::pair<std::string, Quantity>> probe_counters() override { return {}; }
    std::vector<Ceiling> measure_ceilings(double) override { return {}; }
    MachineState& machine_state() override { return cpu().machine_state(); }
    void add_libraries(std::map<std::string, std::string>& libraries) const override { cpu().add_libraries(libraries); }
    std::string unsupported(Precision precision) const override { return cpu().unsupported(precision); }
    std::int64_t cache_bytes() const override { return cpu().cache_bytes(); }
    std::int64_t column_multiple(Precision precision) const override { return cpu().column_multiple(precision); }

  private:
    std::size_t steps_ = 0;
};

}  // namespace kbench
