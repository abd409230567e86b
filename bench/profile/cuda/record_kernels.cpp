// Runs with and without records in turn; records to ranges by graph node; medians over the runs.
#include "bench/profile/cuda/record_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "bench/profile/condition_sampler.h"
#include "bench/profile/cuda/activity.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "kernels/probe/latency.h"
#include "kernels/spin.h"

namespace kbench::cuda {
namespace {

using Records = std::vector<KernelRecord>;

double us(std::uint64_t from_ns, std::uint64_t to_ns) {
    return static_cast<double>(static_cast<std::int64_t>(to_ns - from_ns)) * 1e-3;
}

double median(const std::vector<double>& values) { return summarise(values).median; }

/// The records of each of `launches` equal launches.
std::vector<Records> by_launch(const Records& records, int launches) {
    const auto count = static_cast<std::size_t>(launches);
    if (records.empty() || records.size() % count != 0)
        throw DeviceError(fmt::format("CUPTI recorded {} kernels of {} equal launches", records.size(), launches));
    const auto length = static_cast<std::ptrdiff_t>(records.size() / count);
    std::vector<Records> each;
    for (auto at = records.begin(); at != records.end(); at += length) each.emplace_back(at, at + length);
    return each;
}

Records last_launch(const Records& records, int launches) { return by_launch(records, launches).back(); }

/// `records` by range, where the first is of node `begin` of the graph; nothing where a range would lack a kernel or a
/// record would lie behind the last node.
std::optional<std::vector<Records>> by_range_from(std::size_t begin, const Records& records,
                                                  const std::vector<CapturedWork>& work,
                                                  const std::vector<std::size_t>& range_of_node) {
    std::vector<Records> ranges(work.size());
    for (const KernelRecord& record : records) {
        const std::uint64_t node = record.graph_node - records.front().graph_node + begin;
        if (node >= range_of_node.size()) return std::nullopt;
        ranges[range_of_node[node]].push_back(record);
    }
    for (std::size_t r = 0; r < ranges.size(); ++r)
        if (ranges[r].size() < work[r].launches.size()) return std::nullopt;
    return ranges;
}

/// The records of one launch of the graph, by range: nodes of the graph are numbered as they were captured. A node that
/// fills memory has a record where it runs as a kernel, and else none: a range may have more records than it launched
/// kernels, and the graph may begin with nodes that have none.
std::vector<Records> by_range(Records records, const std::vector<CapturedWork>& work) {
    std::vector<std::size_t> range_of_node;
    std::size_t before = 0;  // nodes ahead of the first that is a kernel for certain, at the most
    bool ahead = true;
    for (std::size_t r = 0; r < work.size(); ++r) {
        range_of_node.resize(range_of_node.size() + work[r].nodes, r);
        if (ahead) before += work[r].nodes - work[r].launches.size();
        ahead = ahead && work[r].launches.empty();
    }
    std::ranges::sort(records, {}, &KernelRecord::graph_node);
    for (std::size_t begin = 0; begin <= before; ++begin)
        if (auto ranges = by_range_from(begin, records, work, range_of_node)) {
            for (Records& range : *ranges) std::ranges::sort(range, {}, &KernelRecord::start_ns);
            return *std::move(ranges);
        }
    throw DeviceError(fmt::format("CUPTI's {} records of kernels do not fit the {} nodes of the {} steps",
                                  records.size(), range_of_node.size(), work.size()));
}

/// How long to wait for the records of kernels that have ended.
constexpr std::chrono::milliseconds longest_wait{500};

/// The records of so many launches of a graph that have ended, and of no other kernel: one that goes on beside them on
/// another stream is not waited for.
Records ended_records(ActivityRecorder& recorder, const std::vector<CapturedWork>& work, int launches) {
    std::size_t least = 0;
    for (const CapturedWork& range : work) least += range.launches.size();
    least *= static_cast<std::size_t>(launches);
    Records all;
    const auto start = std::chrono::steady_clock::now();
    while (true) {
        Records next = recorder.take_ended();
        std::erase_if(next, [](const KernelRecord& record) { return record.graph_node == 0; });
        all.insert(all.end(), std::make_move_iterator(next.begin()), std::make_move_iterator(next.end()));
        // Nodes that fill memory may have records, too: there may be more to come than the fewest.
        if ((all.size() >= least && next.empty()) || std::chrono::steady_clock::now() - start > longest_wait) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::ranges::stable_sort(all, {}, &KernelRecord::start_ns);
    return all;
}

/// The kernels of one range as the median of all runs: of their times and of the gaps before them.
std::vector<KernelResult> median_kernels(const std::vector<std::vector<Records>>& runs, std::size_t range) {
    std::vector<KernelResult> kernels;
    for (std::size_t k = 0; k < runs.front()[range].size(); ++k) {
        std::vector<double> time_us, gap_us;
        for (const std::vector<Records>& run : runs) {
            if (run[range].size() <= k) throw DeviceError(fmt::format("step {} ran other kernels each time", range));
            const KernelRecord& record = run[range][k];
            time_us.push_back(us(record.start_ns, record.end_ns));
            const KernelRecord* before = k > 0 ? &run[range][k - 1] : range > 0 ? &run[range - 1].back() : nullptr;
            if (before != nullptr) gap_us.push_back(us(before->end_ns, record.start_ns));
        }
        KernelResult& kernel = kernels.emplace_back(runs.front()[range][k].launch);
        kernel.time_us = median(time_us);
        kernel.gap_us = gap_us.empty() ? 0 : median(gap_us);
    }
    return kernels;
}

/// Graphs of kernels of one length each, timed with and without records in turn: empty ones, and
/// others of about 2, 5 and 19 microseconds. What records add to an empty kernel is not what they add to one of 2.
class Chains {
  public:
    explicit Chains(Device& device) : device_(device) {
        auto* const stream = static_cast<cudaStream_t>(device.stream());
        const int multiprocessors = device.info().gpu.value().multiprocessors;
        spin(1, multiprocessors, stream);  // loads the kernels
        probe::empty(stream);
        device.synchronize();
        add(1000, [=] { probe::empty(stream); });
        add(1000, [=] { spin(2000, multiprocessors, stream); });
        add(400, [=] { spin(8000, multiprocessors, stream); });
        add(100, [=] { spin(36000, multiprocessors, stream); });
    }

    void time_plain() {
        for (Chain& chain : chains_)
            chain.plain_us.push_back(last_launch_ms(device_, *chain.graph, launches) * 1e3 / chain.kernels);
    }

    void time_recorded(ActivityRecorder& recorder) {
        for (Chain& chain : chains_) {
            last_launch_ms(device_, *chain.graph, launches);
            const Records records = last_launch(recorder.take(), launches);
            std::vector<double> recorded;
            for (const KernelRecord& record : records) recorded.push_back(us(record.start_ns, record.end_ns));
            chain.recorded_us.push_back(median(recorded));
            chain.profiled_us.push_back(us(records.front().start_ns, records.back().start_ns) /
                                        static_cast<double>(records.size() - 1));
        }
    }

    std::vector<RecordInflation> inflation() const {
        std::vector<RecordInflation> result;
        for (const Chain& chain : chains_)
            result.push_back({median(chain.plain_us), median(chain.recorded_us), median(chain.profiled_us)});
        return result;
    }

  private:
    struct Chain {
        int kernels = 0;
        std::unique_ptr<DeviceGraph> graph;
        std::vector<double> plain_us, recorded_us, profiled_us;
    };
    static constexpr int launches = 3;

    /// So many kernels that starting the graph, some microseconds, is little for each of them.
    void add(int kernels, const std::function<void()>& launch) {
        chains_.push_back({kernels,
                           device_.capture([&] {
                               for (int k = 0; k < kernels; ++k) launch();
                           }),
                           {},
                           {},
                           {}});
    }

    Device& device_;
    std::vector<Chain> chains_;
};

/// How long each run with or without records lasts; its last launch counts. Short enough that what drifts meets both.
/// A run as long goes before each pair: while the host reads records the GPU waits, and the first run after that has a
/// higher clock at the power limit than those that follow.
constexpr double burst_s = 0.1;

/// Fewer runs than were asked for are made when those would take longer than this.
constexpr double most_s = 10;
constexpr int fewest_runs = 3;

/// A median of launches with records needs a few; more of them add nothing.
constexpr int fewest_timed_launches = 3, most_timed_launches = 400;

int launches_in(double seconds, double launch_ms) {
    if (launch_ms > long_launch_ms) return 1;
    return 1 + std::clamp(static_cast<int>(seconds * 1e3 / launch_ms), 1, 1000);
}

}  // namespace

RangeKernels record_kernels(Device& device, DeviceGraph& all, const std::vector<CapturedWork>& work, int runs,
                            double warm_up_s) {
    double launch_ms = last_launch_ms(device, all, 1);
    if (launch_ms <= long_launch_ms) launch_ms = last_launch_ms(device, all, 2);
    last_launch_ms(device, all, launches_in(warm_up_s, launch_ms));
    const int launches = launches_in(std::min(burst_s, warm_up_s), launch_ms);
    const int runs_in_time = static_cast<int>(most_s * 1e3 / (3 * launches * launch_ms));
    runs = std::min(runs, std::max(fewest_runs, runs_in_time));
    std::vector<double> profiled_ms, unprofiled_ms;
    std::vector<std::vector<Records>> recorded;
    for (int run = 0; run < runs; ++run) {
        last_launch_ms(device, all, launches);
        unprofiled_ms.push_back(last_launch_ms(device, all, launches));
        ActivityRecorder recorder;
        profiled_ms.push_back(last_launch_ms(device, all, launches));
        recorded.push_back(by_range(last_launch(recorder.take(), launches), work));
    }
    Chains chains(device);
    for (int run = 0; run < runs; ++run) {
        chains.time_plain();
        ActivityRecorder recorder;
        chains.time_recorded(recorder);
    }
    RangeKernels result;
    result.run.runs = runs;
    result.run.profiled_ms = median(profiled_ms);
    result.run.unprofiled_ms = median(unprofiled_ms);
    for (std::size_t r = 0; r < work.size(); ++r) {
        result.by_range.push_back(median_kernels(recorded, r));
        for (const KernelResult& kernel : result.by_range.back()) {
            result.run.kernels_ms += kernel.time_us * 1e-3;
            result.run.gaps_ms += kernel.gap_us * 1e-3;
        }
    }
    result.run.inflation = chains.inflation();
    return result;
}

RangeTimes time_ranges(Device& device, MachineState& state, DeviceGraph& all, const std::vector<CapturedWork>& work,
                       double seconds, const RecordedLaunches& around) {
    double launch_ms = last_launch_ms(device, all, 1);
    if (launch_ms <= long_launch_ms) launch_ms = last_launch_ms(device, all, 2);
    last_launch_ms(device, all, launches_in(seconds / 2, launch_ms));
    RangeTimes result;
    result.launches =
        std::clamp(static_cast<int>(seconds / 2 * 1e3 / launch_ms), fewest_timed_launches, most_timed_launches);
    std::vector<std::unique_ptr<DeviceEvent>> marks;
    for (int i = 0; i <= result.launches + 1; ++i) marks.push_back(device.make_event());
    ConditionSampler conditions(state);
    ActivityRecorder recorder;
    conditions.start();
    if (around.begin) around.begin();
    for (int i = 0; i <= result.launches; ++i) {  // one more: the first waits for the host and does not count
        marks[static_cast<std::size_t>(i)]->record();
        all.launch();
    }
    marks.back()->record();
    device.synchronize();
    if (around.end) around.end();
    result.sm_clock_mhz = conditions.stop().sm_clock_mhz;
    std::vector<double> latency_ms;
    std::vector<std::vector<double>> us_of_ranges(work.size());
    const std::vector<Records> launches =
        by_launch(ended_records(recorder, work, result.launches + 1), result.launches + 1);
    for (std::size_t i = 1; i < launches.size(); ++i) {
        latency_ms.push_back(marks[i + 1]->ms_since(*marks[i]));
        const std::vector<Records> ranges = by_range(launches[i], work);
        for (std::size_t r = 0; r < ranges.size(); ++r)
            if (!ranges[r].empty()) us_of_ranges[r].push_back(us(ranges[r].front().start_ns, ranges[r].back().end_ns));
    }
    result.latency_ms = summarise(latency_ms);
    for (const std::vector<double>& values : us_of_ranges)
        result.us.push_back(values.empty() ? Summary{} : summarise(values));
    return result;
}

}  // namespace kbench::cuda
