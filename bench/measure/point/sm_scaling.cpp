// Time against SMs: the same forward, captured again on the streams of devices with fewer of the GPU's SMs. On a CPU
// against threads: the same steps, made again for fewer of them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "bench/device/fewer_threads.h"
#include "bench/device/multiprocessors.h"
#include "bench/measure/point/part_times.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "kbench/error.h"

namespace kbench {
namespace {

SmCountRun run_of(int multiprocessors, const RangeTimes& times) {
    SmCountRun run;
    run.multiprocessors = multiprocessors;
    set_times(run, times);
    return run;
}

/// By what a device is divided, and the smallest part of that.
struct DividedBy {
    std::string_view one, workers, smallest;

    std::string_view of(int count) const { return count == 1 ? one : workers; }
};
constexpr DividedBy of_gpu{"SM", "SMs", "a quarter"}, of_cpu{"thread", "threads", "half"};
/// A CPU's fewest launches take as long as so many forwards: three on all threads, four on 3/4 and on half of them.
constexpr double forwards_on_threads = 17;

/// Into which numbers, and how the forward is timed on one of them.
struct Division {
    std::vector<int> counts;  ///< most first, which are all
    std::function<RangeTimes(int count)> times;
};

Division by_sms(const PartContext& at, Forward& forward) {
    const int all = at.device.multiprocessors();
    return {counts_at_shares(possible_multiprocessors(at.device)), [&at, &forward, all](int count) {
                const double seconds = at.options.sm_scaling_s;
                if (count == all) return at.profiler.time_ranges(forward.graph(), seconds);
                const std::unique_ptr<Device> part = make_cuda_device(count, at.device.info().ordinal);
                return WorkOnPart(ranges_of(at.plan, *part), *part).times(seconds);
            }};
}

/// On a quarter of its threads a forward would take four times as long, and that number decides nothing.
Division by_threads(const PartContext& at, Forward& forward) {
    const int all = at.device.info().threads;
    std::vector<int> possible(static_cast<std::size_t>(all));
    std::iota(possible.begin(), possible.end(), 1);
    std::vector<int> counts = counts_at_shares(possible);
    std::erase_if(counts, [all](int count) { return 2 * count < all; });
    return {counts, [&at, &forward, all](int count) {
                const double seconds = at.options.sm_scaling_s;
                if (count == all) return at.profiler.time_ranges(forward.graph(), seconds);
                const FewerThreads fewer(at.device, count);
                return WorkOnPart(ranges_made_again(at.plan, at.device), at.device).times(seconds);
            }};
}

}  // namespace

bool can_divide(const PartContext& at) {
    const std::optional<GpuInfo>& gpu = at.device.info().gpu;
    return !gpu || (!gpu->multiprocessors_of_device && at.point.activity.unavailable.empty());
}

void measure_sm_scaling(const PartContext& at, Forward& forward) {
    const double seconds = at.options.sm_scaling_s;
    if (seconds <= 0 || !can_divide(at)) return;
    const PhaseTimer timer(at.point, "sm_scaling");
    SmScaling& scaling = at.point.sm_scaling.emplace();
    const DividedBy& by = at.device.is_gpu() ? of_gpu : of_cpu;
    if (at.device.info().threads == 1) {
        scaling.unavailable = "one thread cannot be divided";
        return;
    }
    if (const double forward_s = at.point.end_to_end->latency.summary_ms.median * 1e-3; forward_s > seconds) {
        scaling.unavailable =
            fmt::format("one run takes {:.2g} s; those of more than {:.2g} s would take too long on {} of the {}",
                        forward_s, seconds, by.smallest, by.workers);
        return;
    }
    if (const double least_s = forwards_on_threads * at.point.end_to_end->latency.summary_ms.median * 1e-3,
        left_s = experiments_left_s(at);
        least_s > left_s) {
        scaling.unavailable = fmt::format("it would take {:.2g} s, and --time-budget leaves {:.2g} s", least_s, left_s);
        return;
    }
    int count = 0;
    try {
        const Division division = at.device.is_gpu() ? by_sms(at, forward) : by_threads(at, forward);
        for (const int next : division.counts) {
            count = next;
            at.begin(fmt::format("on {} {}", count, by.of(count)));
            scaling.runs.push_back(run_of(count, division.times(count)));
        }
    } catch (const Error& error) {
        at.require_device();
        if (scaling.runs.size() < 2) {  // one has nothing to be compared with
            scaling.runs.clear();
            scaling.unavailable = fmt::format("on {} {}: {}", count, by.of(count), error.what());
        } else {
            scaling.ended = fmt::format("on {} {}: {}", count, by.of(count), error.what());
        }
    }
}

}  // namespace kbench
