// Whole runs that take milliseconds: a small GPT-2 on the CPU, or on a CPU that fails as a test wants it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/measure/sweep/run.h"
#include "bench/profile/profiler.h"
#include "models/gpt2.h"

namespace kbench {

Gpt2Config small_config();
Device& cpu();
/// Conditions as on a host where nothing else runs.
Profiler& cpu_profiler();
RunOptions small_run(const std::filesystem::path& out);
/// Leaves out the warning about drift, which a busy machine causes.
inline std::vector<std::string> without_drift(std::vector<std::string> warnings) {
    std::erase_if(warnings, [](const std::string& text) { return text.find(": the timing run took") != text.npos; });
    return warnings;
}
/// The CPU, with the faults that a test asks for.
class OtherDevice final : public Device {
  public:
    std::function<void(std::size_t bytes)> before_allocate;  ///< may throw
    std::function<void()> before_call;                       ///< runs before whatever may fail; may throw
    std::optional<std::int64_t> all_memory;                  ///< all that there is, instead of the machine's
    std::optional<DeviceInfo> told;                          ///< instead of the CPU's
    bool apart = false;                                      ///< the host cannot see its memory, as a GPU's
    std::function<std::unique_ptr<DeviceEvent>()> event;     ///< instead of the CPU's
    std::function<void(void* to, std::size_t bytes)> after_download;
    std::size_t largest_download = 0;

    const DeviceInfo& info() const override { return told ? *told : cpu().info(); }
    void* allocate(std::size_t bytes) override {
        call();
        if (before_allocate) before_allocate(bytes);
        return cpu().allocate(bytes);
    }
    void release(void* memory) noexcept override { cpu().release(memory); }
    std::int64_t free_bytes() const override {
        call();
        return all_memory.value_or(cpu().free_bytes());
    }
    void upload(void* to, const void* from, std::size_t bytes) override {
        call();
        cpu().upload(to, from, bytes);
    }
    void download(void* to, const void* from, std::size_t bytes) override {
        call();
        largest_download = std::max(largest_download, bytes);
        cpu().download(to, from, bytes);
        if (after_download) after_download(to, bytes);
    }
    void copy(void* to, const void* from, std::size_t bytes) override {
        call();
        cpu().copy(to, from, bytes);
    }
    void fill(void* memory, int byte, std::size_t bytes) override {
        call();
        cpu().fill(memory, byte, bytes);
    }
    void* host_view(void* memory) override { return apart ? nullptr : cpu().host_view(memory); }
    void* stream() override { return nullptr; }
    void synchronize() override { call(); }
    std::unique_ptr<DeviceEvent> make_event() override {
        call();
        return event ? event() : cpu().make_event();
    }
    std::unique_ptr<DeviceGraph> capture(std::function<void()> enqueue) override {
        call();
        return cpu().capture(std::move(enqueue));
    }

  private:
    void call() const {
        if (before_call) before_call();
    }
};

/// The CPU's profiler, with the faults that a test asks for.
class OtherProfiler final : public Profiler {
  public:
    std::function<RangeCounters(std::size_t ranges)> count_ranges;
    std::function<void()> before_watch;  ///< at the end of each preparation; may throw
    MachineState* state = nullptr;       ///< instead of the CPU's
    int detached = 0;                    ///< how often

    void detach() override { ++detached; }
    void watch(std::vector<WorkRange> ranges) override {
        if (before_watch) before_watch();
        ranges_ = ranges.size();
        cpu_profiler().watch(std::move(ranges));
    }
    RangeKernels record_kernels(DeviceGraph& all, int runs, double warm_up_s) override {
        return cpu_profiler().record_kernels(all, runs, warm_up_s);
    }
    RangeTimes time_ranges(DeviceGraph& all, double seconds, const RecordedLaunches& around) override {
        return cpu_profiler().time_ranges(all, seconds, around);
    }
    void check(const CounterRequest&) const override {}
    RangeCounters count(const CounterRequest& request) override {
        return count_ranges ? count_ranges(ranges_) : cpu_profiler().count(request);
    }
    std::vector<std::pair<std::string, Quantity>> probe_counters() override { return {}; }
    MachineState& machine_state() override { return state ? *state : cpu_profiler().machine_state(); }

  private:
    std::size_t ranges_ = 0;
};

}  // namespace kbench
