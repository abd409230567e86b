// See small_run.h.
#include "tests/bench/small_run.h"

#include <algorithm>

namespace kbench {

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
    static const std::unique_ptr<Profiler> profiler = make_profiler(cpu());
    return *profiler;
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
    return options;
}

}  // namespace kbench
