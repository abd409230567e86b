// Chunks of forwards between events, and the graph with events between steps.
#include "bench/measure/point/forward.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "bench/measure/point/clock.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "models/cost.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/measure/point/cuda/copies.h"
#endif

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Events one after another before the first step: what a mark itself takes.
constexpr std::size_t empty_intervals = 9;

/// Enqueued at once; the first is dropped.
constexpr std::size_t runs_of_chunk = 6;

template <std::optional<Timing> EndToEnd::*member>
Timing& secondary(EndToEnd& result) {
    std::optional<Timing>& timing = result.*member;
    return timing ? *timing : timing.emplace();
}
Timing& headline(EndToEnd& result) { return result.latency; }

constexpr MeasurementRow rows[] = {
    {MeasurementKind::graph, "graph", headline},
    {MeasurementKind::forward, "forward", headline},
    {MeasurementKind::stream, "stream", secondary<&EndToEnd::stream>},
    {MeasurementKind::enqueue, "enqueue", secondary<&EndToEnd::enqueue>},
    {MeasurementKind::host_to_device, "host_to_device", secondary<&EndToEnd::host_to_device>},
    {MeasurementKind::device_to_host, "device_to_host", secondary<&EndToEnd::device_to_host>},
};

double sum(const std::array<double, role_count>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

/// Numbers of which each differs from its neighbours, in any floating-point type.
std::vector<std::uint16_t> uneven_numbers(std::size_t bytes) {
    std::vector<std::uint16_t> numbers((bytes + 1) / 2);
    std::uint32_t random = 1;
    for (std::uint16_t& number : numbers) {
        random = random * 1664525u + 1013904223u;
        number = static_cast<std::uint16_t>(0x3c00u | (random >> 24));
    }
    return numbers;
}

/// Whether both want the step's operands packed alike, found by packing some.
bool packs_alike(const Plan& plan, const PlannedStep& planned, const Computation& other) {
    for (std::size_t i = 0; i < planned.tensors.size(); ++i) {
        const std::optional<std::size_t> bytes = planned.computation->packed_bytes(i);
        if (bytes != other.packed_bytes(i)) return false;
        if (!bytes) continue;
        const auto plain = uneven_numbers(static_cast<std::size_t>(plan.operand(planned.tensors[i]).bytes()));
        std::vector<std::byte> by_plan(*bytes), by_other(*bytes);
        planned.computation->pack(i, plain.data(), by_plan.data());
        other.pack(i, plain.data(), by_other.data());
        if (by_plan != by_other) return false;
    }
    return true;
}

}  // namespace

std::span<const MeasurementRow> measurement_rows() { return rows; }
const MeasurementRow& row_of(MeasurementKind kind) { return *std::ranges::find(rows, kind, &MeasurementRow::kind); }

std::vector<WorkRange> ranges_of(const Plan& plan, Device& device) {
    std::vector<WorkRange> ranges;
    for (std::size_t s = plan.first_timed(); s < plan.steps().size(); ++s) {
        const PlannedStep& planned = plan.steps()[s];
        WorkRange& range = ranges.emplace_back();
        range.enqueue = [&plan, s, stream = device.stream()] { plan.run_step(s, stream); };
        const Cost cost = step_cost(plan.model(), planned.ops, plan.precision());
        range.least_read_bytes = sum(cost.bytes_read);
        range.least_written_bytes = sum(cost.bytes_written);
        if (!device.is_gpu()) continue;  // no tool would show their names
        range.group = plan.model().ops[planned.naming_op].layer;
        range.name = fmt::format("{} {} {}", op_name(planned.step), shape_text(planned.step), planned.provider->name);
    }
    return ranges;
}

std::vector<WorkRange> ranges_made_again(const Plan& plan, Device& device) {
    std::map<const Computation*, std::shared_ptr<const Computation>> made;
    std::size_t workspace_bytes = 0;
    for (const PlannedStep& planned : plan.timed_steps()) {
        std::shared_ptr<const Computation>& computation = made[planned.computation.get()];
        if (computation) continue;
        computation = planned.provider->make(planned.step, plan.precision());
        if (!packs_alike(plan, planned, *computation))
            throw Unsupported(fmt::format("{} takes its weights in another layout there", op_name(planned.step)));
        workspace_bytes = std::max(workspace_bytes, computation->workspace_bytes());
    }
    const auto workspace = std::make_shared<DeviceBuffer>(device, workspace_bytes);
    std::vector<WorkRange> ranges = ranges_of(plan, device);
    for (std::size_t s = 0; s < ranges.size(); ++s)
        ranges[s].enqueue = [&plan, step = plan.first_timed() + s, workspace, stream = device.stream(),
                             computation = made[plan.timed_steps()[s].computation.get()]] {
            plan.run_step(step, *computation, workspace->data(), stream);
        };
    return ranges;
}

Forward::Forward(const Plan& plan, Device& device, Profiler& profiler)
    : plan_(plan), device_(device), steps_(ranges_of(plan, device)) {
    whole_.enqueue = [this] {
        for (const WorkRange& step : steps_) enqueue(step);
    };
    for (std::size_t s = 0; s < plan.first_timed(); ++s) plan.run_step(s, device.stream());
    device.synchronize();
    double with_loading_ms = 0;
    if (device.is_gpu()) {
        whole_.name = "forward";
        const auto start = Clock::now();
        enqueue(whole_);  // loads every kernel before capture: lazy loading is not allowed to happen inside
        device.synchronize();
        with_loading_ms = ms_since(start);
    }
    profiler.watch(steps_);
    graph_ = device.capture([this] { enqueue(whole_); });
    if (device.is_gpu())
        one_at_a_time_ = with_loading_ms > long_launch_ms && last_launch_ms(device, *graph_, 1) > long_launch_ms;
    for (std::size_t i = 0; i <= empty_intervals + steps_.size(); ++i) step_events_.push_back(device.make_event());
    step_graph_ = device.capture([this] {
        for (std::size_t i = 0; i <= empty_intervals; ++i) step_events_[i]->record();
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            steps_[s].enqueue();
            step_events_[empty_intervals + s + 1]->record();
        }
    });
}

std::vector<Measurement> Forward::measurements() {
    const MeasurementKind kind = device_.is_gpu() ? MeasurementKind::graph : MeasurementKind::forward;
    const double runs_per_sample =
        one_at_a_time_ ? 1 : static_cast<double>(runs_of_chunk) / static_cast<double>(runs_of_chunk - 1);
    std::vector<Measurement> all{{kind, [this] { return chunk(); }, runs_per_sample}};
#ifdef KBENCH_HAVE_CUDA
    if (!device_.is_gpu()) return all;
    // The first is wanted of every plan, the copies of a model's alone: their buffers come with their first chunk.
    const auto copies = std::make_shared<cuda::HostCopies>(plan_, device_);
    all.push_back(
        {MeasurementKind::stream, [this] { return timed_chunk(one_at_a_time_, [this] { enqueue(whole_); }); }});
    all.push_back({MeasurementKind::enqueue, [this] { return enqueue_chunk(); }});
    all.push_back({MeasurementKind::host_to_device, [this, copies] {
                       copies->make_buffers();
                       return timed_chunk(false, [&] { copies->enqueue_inputs(); });
                   }});
    all.push_back({MeasurementKind::device_to_host, [this, copies] {
                       copies->make_buffers();
                       return timed_chunk(one_at_a_time_, [&] { copies->enqueue_outputs(); });
                   }});
#endif
    return all;
}

/// Whether these samples were too short for the clock; then the next ones are of more runs.
bool Forward::needs_more_runs(const std::vector<double>& times_ms) {
    const std::size_t needed =
        runs_for_clock(std::ranges::min(times_ms), runs_a_sample_, clock_tick_ms(device_.is_gpu()));
    if (needed <= runs_a_sample_) return false;
    runs_a_sample_ = needed;
    return true;
}

std::vector<double> Forward::chunk() {
    std::vector<double> times;
    do
        times = timed_chunk(
            one_at_a_time_, [this] { graph_->launch(); }, runs_a_sample_);
    while (needs_more_runs(times));
    return times;
}

std::vector<double> Forward::chunk_of_steps() {
    need_chunk_events(2);
    const auto between_marks_ms = [this](std::size_t runs) {
        chunk_events_[0]->record();
        for (std::size_t r = 0; r < runs; ++r, next_step_ = (next_step_ + 1) % steps_.size())
            steps_[next_step_].enqueue();
        chunk_events_[1]->record();
        return chunk_events_[1]->ms_since(*chunk_events_[0]);
    };
    std::vector<double> times;
    do {
        std::vector<double> empty;
        for (std::size_t i = 0; i < empty_intervals; ++i) empty.push_back(between_marks_ms(0));
        const double marks_ms = summarise(empty).median;
        times.clear();
        for (std::size_t s = 0; s < std::max<std::size_t>(1, steps_.size() / runs_a_sample_); ++s)
            times.push_back(std::max(0.0, between_marks_ms(runs_a_sample_) - marks_ms) /
                            static_cast<double>(runs_a_sample_));
    } while (needs_more_runs(times));
    return times;
}

StepTimes Forward::step_times() {
    step_graph_->launch();
    device_.synchronize();
    const auto interval_us = [this](std::size_t i) { return step_events_[i + 1]->ms_since(*step_events_[i]) * 1e3; };
    std::vector<double> empty;
    for (std::size_t i = 0; i < empty_intervals; ++i) empty.push_back(interval_us(i));
    StepTimes times;
    times.overhead_us = summarise(empty).median;
    for (std::size_t i = empty_intervals; i + 1 < step_events_.size(); ++i)
        times.us.push_back(std::max(0.0, std::round((interval_us(i) - times.overhead_us) * 1e3) / 1e3));
    if (!device_.is_gpu())
        times.whole_us = step_events_.back()->ms_since(*step_events_[empty_intervals]) * 1e3 -
                         times.overhead_us * static_cast<double>(times.us.size());
    return times;
}

std::function<std::vector<double>()> Forward::doubled(std::string_view op) {
    const std::shared_ptr<DeviceGraph> twice = device_.capture([this, kind = std::string(op)] {
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            steps_[s].enqueue();
            if (op_name(plan_.timed_steps()[s].step) == kind) steps_[s].enqueue();
        }
    });
    return [this, twice] { return doubled_chunk(*twice); };
}

void Forward::need_chunk_events(std::size_t count) {
    while (chunk_events_.size() < count) chunk_events_.push_back(device_.make_event());
}

/// Runs `enqueue` several times with an event before, between and after, so that all but the first, which does not
/// count, find the GPU busy and the CPU's own time stays out of the measurement. Or just `once`. Between two events it
/// runs `runs_a_mark` times, and their time is divided by that.
std::vector<double> Forward::timed_chunk(bool once, const std::function<void()>& enqueue, std::size_t runs_a_mark) {
    const std::size_t runs = once ? 1 : runs_of_chunk, first = once ? 0 : 1;
    need_chunk_events(runs + 1);
    for (std::size_t r = 0; r < runs; ++r) {
        chunk_events_[r]->record();
        for (std::size_t i = 0; i < runs_a_mark; ++i) enqueue();
    }
    chunk_events_[runs]->record();
    device_.synchronize();
    std::vector<double> times;
    for (std::size_t r = first; r < runs; ++r)
        times.push_back(chunk_events_[r + 1]->ms_since(*chunk_events_[r]) / static_cast<double>(runs_a_mark));
    return times;
}

/// The CPU's time to launch the graph, into an empty queue.
std::vector<double> Forward::enqueue_chunk() {
    device_.synchronize();
    const auto start = Clock::now();
    graph_->launch();
    const double ms = ms_since(start);
    device_.synchronize();
    return {ms};
}

/// On a GPU the plain forward and `twice` in turn, without a pause: each of the latter less the mean of its two
/// neighbours. A CPU has no queue to keep full: one of each.
std::vector<double> Forward::doubled_chunk(DeviceGraph& twice) {
    if (!device_.is_gpu()) {
        const double once = last_launch_ms(device_, *graph_, 1);
        return {last_launch_ms(device_, twice, 1) - once};
    }
    constexpr std::size_t pairs = 4, launches = 2 * pairs + 1;
    need_chunk_events(launches + 1);
    graph_->launch();
    for (std::size_t i = 0; i <= launches; ++i) {
        chunk_events_[i]->record();
        if (i < launches) (i % 2 == 0 ? *graph_ : twice).launch();
    }
    device_.synchronize();
    const auto ms = [this](std::size_t i) { return chunk_events_[i + 1]->ms_since(*chunk_events_[i]); };
    std::vector<double> differences;
    for (std::size_t i = 1; i < launches; i += 2) differences.push_back(ms(i) - (ms(i - 1) + ms(i + 1)) / 2);
    return differences;
}

}  // namespace kbench
