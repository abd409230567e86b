// Chooses the profiler of a device, and the ranges that profilers see; a CPU's is here, as its parts have files of
// their own.
#include "bench/profile/profiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "bench/profile/cpu_counters.h"
#include "bench/profile/cpu_state.h"
#include "bench/profile/cpu_times.h"
#include "bench/profile/perf.h"
#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/profile/cuda/cuda_profiler.h"
#include "bench/profile/cuda/nvtx.h"
#endif

namespace kbench {
namespace {

class CpuProfiler final : public Profiler {
  public:
    explicit CpuProfiler(Device& device) : device_(device) {}

    void detach() override {}
    void watch(std::vector<WorkRange> ranges) override { ranges_ = std::move(ranges); }
    RangeKernels record_kernels(DeviceGraph&, int, double) override {
        throw DeviceError("steps on a CPU launch no kernels");
    }

    RangeTimes time_ranges(DeviceGraph&, double seconds, const RecordedLaunches& around) override {
        return time_ranges_on_cpu(ranges_, seconds, around);
    }

    void check(const CounterRequest& request) const override { check_cpu_request(request); }
    RangeCounters count(const CounterRequest&) override { return count_on_cpu(perf_, ranges_); }
    std::vector<std::pair<std::string, Quantity>> probe_counters() override {
        HostCounters counters = HostCounters::open(perf_);
        counters.start();
        {
            const DeviceBuffer memory(device_, std::size_t{8} << 20);
            device_.fill(memory.data(), 1, memory.bytes());  // something to count
        }
        const HostCounts counts = counters.stop();
        Quantity traffic = counts.dram_bytes.value ? counts.dram_bytes : counts.dram_read_bytes;
        if (counters.traffic_source().empty())
            traffic = Quantity::unavailable(fmt::format("{}", fmt::join(counters.why_not(), "; ")));
        return {{"cpu cycles", counts.cycles}, {"cpu memory traffic", traffic}};
    }

    MachineState& machine_state() override { return state_; }

  private:
    Device& device_;
    std::vector<WorkRange> ranges_;
    LinuxPerfSystem perf_;
    CpuState state_;
};

}  // namespace

void enqueue(const WorkRange& range) {
#ifdef KBENCH_HAVE_CUDA
    std::optional<cuda::NvtxRange> group, name;
    if (!range.group.empty()) group.emplace(range.group);
    if (!range.name.empty()) name.emplace(range.name);
#endif
    range.enqueue();
}

std::unique_ptr<Profiler> make_profiler(Device& device) {
#ifdef KBENCH_HAVE_CUDA
    if (device.is_gpu()) return cuda::make_cuda_profiler(device);
#endif
    return std::make_unique<CpuProfiler>(device);
}

}  // namespace kbench
