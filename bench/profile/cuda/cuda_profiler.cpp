// Counting by kernel first, by call where a kernel alone cannot be counted.
#include "bench/profile/cuda/cuda_profiler.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include <fmt/format.h>

#include "bench/profile/cuda/activity.h"
#include "bench/profile/cuda/counted_device.h"
#include "bench/profile/cuda/record_kernels.h"
#include "bench/profile/cuda/stall_sampler.h"
#include "bench/profile/nvml.h"
#include "kbench/error.h"
#include "kernels/spin.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t launch_count(const CapturedWork& work) { return work.launches.size(); }
bool is_one_kernel(const CapturedWork& work) { return work.nodes == 1 && launch_count(work) == 1; }

/// What `probe` gives, or why it gives nothing.
template <class Probe>
Quantity attempt(Probe probe) {
    try {
        return Quantity::measured(probe());
    } catch (const DeviceError& error) {
        return Quantity::unavailable(error.what());
    }
}

class CudaProfiler final : public Profiler {
  public:
    explicit CudaProfiler(Device& device) : device_(device), state_(device.info().gpu.value().uuid) {}

    void detach() override {
        device_.synchronize();  // CUPTI must not be left while it is in use
        detach_cupti();
    }

    void watch(std::vector<WorkRange> ranges) override {
        ranges_ = std::move(ranges);
        work_ = work_now();
    }

    RangeKernels record_kernels(DeviceGraph& all, int runs, double warm_up_s) override {
        return cuda::record_kernels(device_, all, work_, runs, warm_up_s);
    }

    RangeTimes time_ranges(DeviceGraph& all, double seconds, const RecordedLaunches& around) override {
        return cuda::time_ranges(device_, state_, all, work_, seconds, around);
    }

    void check(const CounterRequest& request) const override {
        if (const std::string why = uncountable(); request.required && !why.empty())
            throw UsageError(fmt::format("{}; leave out --counters and --metrics, or --sms", why));
        std::string chip;
        try {
            chip = chip_of_device(ordinal());
        } catch (const DeviceError&) {
            return;  // count() will say why
        }
        const std::vector<std::string> known = metric_chips();
        if (std::ranges::find(known, chip) == known.end()) return;  // likewise
        const CuptiHost host(chip);
        for (const std::string& counter : counters_of(requested_metrics(metric_sets(chip), request)))
            require_counter(host, counter);
    }

    /// Every pass runs all ranges, so what one overwrites its predecessors have made anew.
    RangeCounters count(const CounterRequest& request) override {
        if (const std::string why = uncountable(); !why.empty()) throw DeviceError(why);
        const auto start = Clock::now();
        RangeCounters result;
        result.discarded.resize(work_.size());
        result.by_range.resize(work_.size());
        result.run.chip = chip_of_device(ordinal());
        const std::vector<Metric> metrics = requested_metrics(metric_sets(result.run.chip), request);
        const std::size_t first = work_.size() - std::min(work_.size(), request.most_ranges);
        std::vector<bool> counted(work_.size(), false);
        std::fill_n(counted.begin(), first, true);  // treated as counted, as nobody asks for them
        const std::vector<CountedMetric> described = describe_metrics(metrics);
        std::vector<std::map<std::string, double>> sampled(work_.size());
        if (request.samples()) try {
                sampled = sample_stalls(first, result.run);
            } catch (const DeviceError& error) {
                if (metrics.empty()) throw;
                result.run.metrics.push_back({std::string(stall_samples), "sample", "smsp__pcsamp_sample_count",
                                              Origin::unavailable, error.what()});
            }
        if (metrics.empty()) counted.assign(counted.size(), true);
        try {
            if (!metrics.empty() &&
                std::any_of(work_.begin() + static_cast<std::ptrdiff_t>(first), work_.end(), is_one_kernel))
                count_ranges(RangeOf::kernel, metrics, first, counted, result);
        } catch (const DeviceError& error) {
            result.warning = fmt::format("counters are of ranges longer than their kernels, by call: {}", error.what());
        }
        if (std::ranges::find(counted, false) != counted.end())
            count_ranges(RangeOf::call, metrics, first, counted, result);
        result.run.metrics.insert(result.run.metrics.begin(), described.begin(), described.end());
        for (std::size_t r = 0; r < work_.size(); ++r) result.by_range[r].insert(sampled[r].begin(), sampled[r].end());
        result.run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        return result;
    }

    std::vector<std::pair<std::string, Quantity>> probe_counters() override {
        const auto work = [this] {
            spin(10000, device_.info().gpu->multiprocessors, static_cast<cudaStream_t>(device_.stream()));
        };
        const Quantity kernels = attempt([&] {
            ActivityRecorder recorder;
            work();
            return static_cast<double>(recorder.take().size());
        });
        const Quantity cycles = attempt([&] {
            RangeProfiler profiler = range_profiler(ordinal(), {"sm__cycles_active.avg"}, RangeOf::kernel, 1);
            collect(
                profiler, [](std::size_t) {}, 1, [&](std::size_t) { work(); });
            return profiler.values(0).front();
        });
        return {{"kernel records", kernels}, {"gpu counters", cycles}};
    }

    MachineState& machine_state() override { return state_; }

  private:
    int ordinal() const { return device_.info().ordinal; }

    /// Why counters would say nothing about the work; empty where they would.
    std::string uncountable() const {
        const GpuInfo& gpu = *device_.info().gpu;
        if (!gpu.multiprocessors_of_device) return "";
        return fmt::format("counters count the whole device, and the work has only {} of its {} SMs",
                           gpu.multiprocessors, *gpu.multiprocessors_of_device);
    }

    std::vector<CapturedWork> work_now() const {
        std::vector<CapturedWork> work;
        for (const WorkRange& range : ranges_)
            work.push_back(captured_work(static_cast<cudaStream_t>(device_.stream()), range.enqueue));
        return work;
    }

    /// Runs the ranges from `first` on in all passes, and gives `result` the values of those that are not `counted` yet
    /// and that CUPTI counts apart from others: by kernel those that are one kernel, by call all.
    void count_ranges(RangeOf range_of, const std::vector<Metric>& metrics, std::size_t first,
                      std::vector<bool>& counted, RangeCounters& result) {
        const bool by_kernel = range_of == RangeOf::kernel;
        std::vector<std::size_t> counted_as(work_.size());  // CUPTI's number of the first kernel, or of the call
        std::size_t count = 0;
        for (std::size_t r = first; r < work_.size(); ++r) {
            counted_as[r] = count;
            count += by_kernel ? launch_count(work_[r]) : 1;
        }
        RangeProfiler profiler = range_profiler(ordinal(), counters_of(metrics), range_of, count);
        const auto before_pass = [&](std::size_t pass) {
            const std::vector<CapturedWork> now = work_now();
            discard_changed(pass, now, result.discarded);
            if (by_kernel && !std::ranges::equal(now, work_, {}, launch_count, launch_count))
                throw DeviceError(fmt::format("counter pass {} had other kernels than the timing run", pass));
            for (std::size_t r = 0; r < first; ++r) ranges_[r].enqueue();
        };
        collect(profiler, before_pass, work_.size() - first,
                [&](std::size_t call) { ranges_[first + call].enqueue(); });
        for (std::size_t r = first; r < work_.size(); ++r) {
            if (counted[r] || (by_kernel && !is_one_kernel(work_[r]))) continue;
            result.by_range[r] = metric_values(metrics, profiler.counters(), profiler.values(counted_as[r]));
            counted[r] = true;
        }
        result.run.passes += static_cast<int>(profiler.passes());
    }

    /// Samples what warps of each range from `first` on wait for in cycles without an issue. The device is idle before
    /// and after each, so that no sample belongs to another range. Caches are as the ranges before it left them.
    std::vector<std::map<std::string, double>> sample_stalls(std::size_t first, CounterRun& run) {
        constexpr int forwards = 4;
        std::vector<std::map<std::string, double>> by_range(work_.size());
        StallSampler sampler;
        std::set<std::string> reasons;
        for (int forward = 0; forward < forwards; ++forward) {
            for (std::size_t r = 0; r < first; ++r) ranges_[r].enqueue();
            for (std::size_t r = first; r < work_.size(); ++r) {
                device_.synchronize();
                sampler.start();
                ranges_[r].enqueue();
                device_.synchronize();
                for (const auto& [reason, count] : sampler.stop()) {
                    by_range[r][std::string(sampled_prefix) + reason] += count;
                    reasons.insert(reason);
                }
            }
        }
        if (reasons.empty()) throw DeviceError("PC sampling gave no samples");
        for (const std::string& reason : reasons)
            run.metrics.push_back({std::string(sampled_prefix) + reason, "sample",
                                   fmt::format("smsp__pcsamp_warps_issue_stalled_{}_not_issued", reason),
                                   Origin::measured, ""});
        run.passes += forwards;
        return by_range;
    }

    /// The kernels of a pass must be those that were timed.
    void discard_changed(std::size_t pass, const std::vector<CapturedWork>& now,
                         std::vector<std::string>& discarded) const {
        for (std::size_t r = 0; r < now.size(); ++r)
            if (now[r] != work_[r] && discarded[r].empty())
                discarded[r] = fmt::format("the kernels of counter pass {} were not those of the timing run", pass);
    }

    Device& device_;
    Nvml state_;
    std::vector<WorkRange> ranges_;
    std::vector<CapturedWork> work_;  ///< by range, from when it was first watched
};

}  // namespace

std::unique_ptr<Profiler> make_cuda_profiler(Device& device) { return std::make_unique<CudaProfiler>(device); }

}  // namespace kbench::cuda
