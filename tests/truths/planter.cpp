// Prepares memory and roofs for planted work, and takes quick looks at it.
#include "tests/truths/planter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/profile/condition_sampler.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "kernels/probe/memory.h"

namespace kbench {

const Ceiling& Planter::roof(std::string_view ceiling) const {
    const auto found = std::ranges::find(known_.roofs().ceilings, ceiling, &Ceiling::name);
    if (found == known_.roofs().ceilings.end() || !found->value.value)
        throw Unsupported(fmt::format("the roof {} was not measured", ceiling));
    return *found;
}

Memory Planter::allocate(std::int64_t bytes) const {
    auto memory = std::make_shared<DeviceBuffer>(device(), static_cast<std::size_t>(bytes));
    device().fill(memory->data(), 0, memory->bytes());
    return memory;
}

Memory Planter::allocate_random(std::int64_t bytes) const {
    constexpr std::int64_t chunk = cuda::probe::memory_chunk_bytes;
    constexpr std::uint32_t seed = 1;
    const std::int64_t whole = (bytes + chunk - 1) / chunk * chunk;
    Memory memory = allocate(whole);
    cuda::probe::stream_memory(cuda::probe::Traffic::write, {}, {memory->data(), nullptr, nullptr, whole, nullptr},
                               seed, multiprocessors(), nullptr, stream());
    return memory;
}

double Planter::ms(const std::function<void()>& enqueue) const {
    enqueue();  // loads the kernel
    device().synchronize();
    return last_launch_ms(device(), *device().capture(enqueue), 4);
}

double Planter::pace_ms(const std::vector<KnownStep>& steps) const {
    using Clock = std::chrono::steady_clock;
    constexpr int runs = 9;
    if (device().is_gpu()) return 0;
    std::vector<double> ms;
    for (int run = 0; run < runs; ++run) {
        const auto start = Clock::now();
        for (const KnownStep& step : steps) step.enqueue();
        ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    return summarise(ms).median;
}

double Planter::clock_mhz(const std::function<void()>& enqueue) const {
    using Clock = std::chrono::steady_clock;
    const auto run = [&](double seconds) {
        for (const auto start = Clock::now(); std::chrono::duration<double>(Clock::now() - start).count() < seconds;) {
            for (int i = 0; i < 20; ++i) enqueue();
            device().synchronize();
        }
    };
    run(settled_budget().sampler.warm_up_s);
    ConditionSampler conditions(known_.machine_state());
    conditions.start();
    run(0.5);
    const Quantity clock = conditions.stop().sm_clock_mhz;
    if (!clock.value) throw Unsupported("the SMs' clock cannot be read: " + clock.reason);
    return *clock.value;
}

KnownBudget Planter::budget(std::vector<std::string> extra_sets, std::vector<std::string> metrics) const {
    KnownBudget budget;
    budget.sampler.time_budget_s = 2;  // ten samples must not resemble their neighbours
    budget.sampler.warm_up_s = 0.2;
    budget.sampler.min_time_s = 0.3;
    budget.activity_runs = 3;
    budget.activity_warm_up_s = 0.05;
    if (!device().is_gpu()) budget.counters.sets = {"core"};
    for (std::string& set : extra_sets) budget.counters.sets.push_back(std::move(set));
    budget.counters.metrics = std::move(metrics);
    return budget;
}

KnownBudget Planter::settled_budget(std::vector<std::string> extra_sets, std::vector<std::string> metrics) const {
    KnownBudget settled = budget(std::move(extra_sets), std::move(metrics));
    settled.sampler.time_budget_s = 5;
    settled.sampler.warm_up_s = 1;
    settled.sampler.min_time_s = 1.2;
    settled.activity_warm_up_s = 0.5;
    return settled;
}

}  // namespace kbench
