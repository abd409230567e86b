// One pair of events an iteration.
#include "profile/embedded/profiler.h"

#include <algorithm>
#include <stdexcept>

namespace kbench::embedded {
namespace {

/// A scope that occurs in one of so many iterations is still measured as often as asked.
constexpr std::int64_t most_turns_a_sample = 10;

/// The legacy default stream and the threads' own are no handles of one context.
bool is_default(CUstream stream) {
    return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

}  // namespace

DeviceProfiler::DeviceProfiler(const Schedule& schedule, const Driver& driver, CUcontext context, int id,
                               std::string name)
    : schedule_(schedule), driver_(driver), context_(context) {
    recorded_.id = id;
    recorded_.name = std::move(name);
}

DeviceProfiler::Capture DeviceProfiler::capture_of(CUstream stream, std::int64_t& id) const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    // It fails where the legacy stream may not be touched, as another one is captured.
    if (driver_.stream_get_capture(stream, &status, &number) != CUDA_SUCCESS) return Capture::refused;
    id = static_cast<std::int64_t>(number);
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) return Capture::none;
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? Capture::active : Capture::refused;
}

DeviceProfiler::Track& DeviceProfiler::track(std::string_view label, CUstream stream) {
    const auto found = tracks_.find(KeyView{stream, label});
    return found != tracks_.end() ? found->second : tracks_[Key{stream, std::string(label)}];
}

std::string DeviceProfiler::stream_name(CUstream stream) {
    if (stream == CU_STREAM_PER_THREAD) return "per-thread default";
    if (is_default(stream)) return "default";
    auto found = std::ranges::find(streams_, stream);
    if (found == streams_.end()) found = streams_.insert(streams_.end(), stream);
    return "stream " + std::to_string(found - streams_.begin());
}

std::size_t DeviceProfiler::scope_at(Occurrences& occurrences, int occurrence, std::string_view label, CUstream stream,
                                     bool in_graph, std::int64_t index) {
    if (static_cast<std::size_t>(occurrence) < occurrences.scopes.size())
        return occurrences.scopes[static_cast<std::size_t>(occurrence)];
    std::size_t place = not_scheduled;
    if (const std::optional<std::size_t> row = schedule_.row(label)) {
        place = scopes_.size();
        Scope& scope = scopes_.emplace_back();
        scope.recorded = {std::string(label), stream_name(stream), occurrence, in_graph, index, {}, {}, {}};
        scope.row = *row;
    }
    occurrences.scopes.push_back(place);
    return place;
}

void DeviceProfiler::begin(std::string_view label, CUstream stream) {
    std::int64_t id = 0;
    const Capture capture = capture_of(stream, id);
    if (capture == Capture::refused || is_finished_) return;
    const bool in_graph = capture == Capture::active;
    if (!in_graph && iteration_ < schedule_.first) return;
    if (in_graph && capture_ != id) {
        capture_ = id;
        capture_index_ = 0;
    }
    Track& known = track(label, stream);
    Occurrences& occurrences = in_graph ? known.in_graph : known.in_stream;
    occurrences.renew(in_graph ? id : iteration_);
    const int occurrence = occurrences.begun++;
    occurrences.open.push_back(occurrence);
    const std::int64_t index = in_graph ? capture_index_++ : index_++;
    const std::size_t place = scope_at(occurrences, occurrence, label, stream, in_graph, index);
    if (place == not_scheduled) return;
    if (in_graph) {
        const InContext in_context(driver_, context_);
        // Captured again, the scope keeps its events: whichever graph is launched renews them.
        Scope& scope = scopes_[place];
        if (!scope.graph_begin) scope.graph_begin = make_event();
        record(scope.graph_begin, stream, true);
    } else if (place == target_ && start_) {
        const InContext in_context(driver_, context_);
        scope_begin_ = make_event();
        record(scope_begin_, stream);
    }
}

void DeviceProfiler::end(std::string_view label, CUstream stream) {
    std::int64_t id = 0;
    const Capture capture = capture_of(stream, id);
    if (capture == Capture::refused || is_finished_) return;
    const bool in_graph = capture == Capture::active;
    if (!in_graph && iteration_ < schedule_.first) return;
    Track& known = track(label, stream);
    Occurrences& occurrences = in_graph ? known.in_graph : known.in_stream;
    if (occurrences.number != (in_graph ? id : iteration_) || occurrences.open.empty()) {
        if (in_graph || iteration_ > schedule_.first)
            note("'" + std::string(label) + "' ended on " + stream_name(stream) +
                 " without a begin in the same iteration or graph");
        return;
    }
    const int occurrence = occurrences.open.back();
    occurrences.open.pop_back();
    const std::int64_t index = in_graph ? capture_index_++ : index_++;
    const std::size_t place = occurrences.scopes[static_cast<std::size_t>(occurrence)];
    if (place == not_scheduled) return;
    Scope& scope = scopes_[place];
    if (!scope.recorded.end_index) scope.recorded.end_index = index;
    if (in_graph) {
        const InContext in_context(driver_, context_);
        if (!scope.graph_end) scope.graph_end = make_event();
        record(scope.graph_end, stream, true);
    } else if (place == target_ && scope_begin_ && !scope_end_) {
        const InContext in_context(driver_, context_);
        scope_end_ = make_event();
        record(scope_end_, stream);
    }
}

void DeviceProfiler::iteration(CUstream stream) {
    if (is_finished_) return;
    std::int64_t id = 0;
    if (const Capture capture = capture_of(stream, id); capture != Capture::none) {
        note("an iteration began in a stream while it was captured, which was not counted");
        return;
    }
    const InContext in_context(driver_, context_);
    Event mark;
    if (start_) {
        mark = make_event();
        record(mark, stream);
        close_iteration(mark);
    }
    drain(false);
    ++iteration_;
    index_ = 0;
    start_ = scope_begin_ = scope_end_ = nullptr;
    target_ = not_scheduled;
    reads_graphs_ = false;
    if (iteration_ < schedule_.first) return;
    if (is_complete()) {
        finish();
        return;
    }
    if (std::exchange(settles_, false)) return;
    if (!mark) {
        mark = make_event();
        record(mark, stream);
    }
    start_ = mark;
    if (iteration_ > schedule_.first) choose();  // the first shows which scopes there are
}

bool DeviceProfiler::is_done(const Scope& scope) const {
    const std::int64_t turns = scope.recorded.in_graph ? graph_turns_ : scope.turns;
    return scope.taken >= schedule_.repeat || turns >= most_turns_a_sample * schedule_.repeat;
}

bool DeviceProfiler::all_done() const {
    const auto latest = std::ranges::max_element(schedule_.scopes, {}, &ScheduledScope::start)->start;
    return iteration_ > std::max(schedule_.first, latest) && !scopes_.empty() &&
           std::ranges::all_of(scopes_, [&](const Scope& scope) { return is_done(scope); });
}

/// The scope that had the fewest turns; all of graphs have one together.
void DeviceProfiler::choose() {
    std::pair fewest{std::int64_t{-1}, std::size_t{0}};
    bool is_of_graph = false;
    for (std::size_t i = 0; i < scopes_.size(); ++i) {
        const Scope& scope = scopes_[i];
        if (is_done(scope) || start_of(scope) > iteration_ || (scope.recorded.in_graph && !scope.graph_end)) continue;
        const std::pair turn{scope.recorded.in_graph ? graph_turns_ : scope.turns, scope.row};
        if (fewest.first >= 0 && turn >= fewest) continue;
        fewest = turn;
        is_of_graph = scope.recorded.in_graph;
        target_ = is_of_graph ? not_scheduled : i;
    }
    if (fewest.first < 0) return;
    reads_graphs_ = is_of_graph;
    ++(is_of_graph ? graph_turns_ : scopes_[target_].turns);
}

void DeviceProfiler::close_iteration(Event end) {
    Pending closed;
    closed.start = start_;
    closed.end = std::move(end);
    if (scope_end_) {
        closed.scope = target_;
        closed.scope_begin = scope_begin_;
        closed.scope_end = scope_end_;
        ++scopes_[target_].taken;
    } else if (scope_begin_) {
        note("'" + scopes_[target_].recorded.label + "' did not end in the iteration in which it began");
    }
    pending_.push_back(std::move(closed));
    if (reads_graphs_) read_graphs(pending_.back().start, pending_.back().end);
}

/// A launch of the next iteration would renew the events, so they are read before that.
void DeviceProfiler::read_graphs(const Event& start, const Event& end) {
    driver_.check(driver_.event_synchronize(end.get()), "cuEventSynchronize");
    for (Scope& scope : scopes_) {
        if (!scope.graph_end || is_done(scope) || start_of(scope) > iteration_) continue;
        float offset = 0, until = 0;
        // Those of a graph that was never launched have no time, and earlier ones ended before this iteration.
        if (driver_.event_synchronize(scope.graph_end.get()) != CUDA_SUCCESS ||
            driver_.event_elapsed(&until, start.get(), scope.graph_end.get()) != CUDA_SUCCESS || until <= 0 ||
            driver_.event_elapsed(&offset, start.get(), scope.graph_begin.get()) != CUDA_SUCCESS)
            continue;
        ++scope.taken;
        add_sample(scope, offset, elapsed(scope.graph_begin, scope.graph_end));
    }
    settles_ = true;
}

void DeviceProfiler::drain(bool waits) {
    for (; !pending_.empty(); pending_.pop_front()) {
        const Pending& next = pending_.front();
        for (const Event& last : {next.end, next.scope_end}) {
            if (!last) continue;
            if (waits) driver_.check(driver_.event_synchronize(last.get()), "cuEventSynchronize");
            const CUresult state = driver_.event_query(last.get());
            if (state == CUDA_ERROR_NOT_READY) return;
            driver_.check(state, "cuEventQuery");
        }
        take(next);
    }
}

void DeviceProfiler::take(const Pending& pending) {
    recorded_.iteration_ms.push_back(elapsed(pending.start, pending.end));
    if (pending.scope != not_scheduled)
        add_sample(scopes_[pending.scope], elapsed(pending.start, pending.scope_begin),
                   elapsed(pending.scope_begin, pending.scope_end));
}

void DeviceProfiler::add_sample(Scope& scope, double offset_ms, double measured_ms) {
    scope.recorded.offset_ms.push_back(offset_ms);
    scope.recorded.measured_ms.push_back(measured_ms);
}

double DeviceProfiler::elapsed(const Event& from, const Event& to) const {
    float ms = 0;
    driver_.check(driver_.event_elapsed(&ms, from.get(), to.get()), "cuEventElapsedTime");
    return ms;
}

void DeviceProfiler::finish() {
    is_finished_ = true;
    const InContext in_context(driver_, context_);
    drain(true);
}

bool DeviceProfiler::is_complete() const { return (schedule_.end && iteration_ >= *schedule_.end) || all_done(); }

RecordedDevice DeviceProfiler::recorded() const {
    RecordedDevice device = recorded_;
    if (iteration_ < 0)
        device.notes.push_back("no kbench_iteration() on a stream of this device: nothing was measured");
    if (iteration_ >= schedule_.first && scopes_.empty())
        device.notes.push_back("no scope that the schedule names began in the measured iterations");
    for (const Scope& scope : scopes_) device.scopes.push_back(scope.recorded);
    return device;
}

void DeviceProfiler::note(const std::string& text) {
    constexpr std::size_t most = 100;
    if (noted_.size() < most && noted_.insert(text).second) recorded_.notes.push_back(text);
}

/// Events go back to where they came from: a program that measures for hours needs no more than are on their way.
Event DeviceProfiler::make_event() {
    CUevent event = nullptr;
    if (unused_->empty()) {
        driver_.check(driver_.event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    } else {
        event = unused_->back();
        unused_->pop_back();
    }
    return {event, [unused = unused_](CUevent again) { unused->push_back(again); }};
}

void DeviceProfiler::record(const Event& event, CUstream stream, bool in_graph) const {
    const unsigned flags = in_graph ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT;
    driver_.check(driver_.event_record(event.get(), stream, flags), "cuEventRecordWithFlags");
}

Profiler::Profiler(Schedule schedule, std::unique_ptr<Driver> driver)
    : schedule_(std::move(schedule)), driver_(std::move(driver)) {}

DeviceProfiler* Profiler::device_of(CUstream stream) {
    CUcontext context = nullptr;
    if (is_default(stream)) {
        if (driver_->context_get_current(&context) != CUDA_SUCCESS) return nullptr;
    } else if (const auto known = contexts_.find(stream); known != contexts_.end()) {
        context = known->second;
    } else {
        if (driver_->stream_get_context(stream, &context) != CUDA_SUCCESS) return nullptr;
        contexts_[stream] = context;
    }
    if (context == nullptr) return nullptr;
    if (const auto known = devices_.find(context); known != devices_.end()) return known->second.get();
    std::unique_ptr<DeviceProfiler>& device = devices_[context];
    const InContext in_context(*driver_, context);
    CUdevice id = 0;
    char name[256] = {};
    driver_->check(driver_->context_get_device(&id), "cuCtxGetDevice");
    driver_->check(driver_->device_get_name(name, sizeof name - 1, id), "cuDeviceGetName");
    const auto same = std::ranges::find(in_order_, static_cast<int>(id), &DeviceProfiler::id);
    if (same != in_order_.end()) {
        (*same)->note("streams of a second context of this device are not measured");
        return nullptr;
    }
    device = std::make_unique<DeviceProfiler>(schedule_, *driver_, context, static_cast<int>(id), name);
    return in_order_.emplace_back(device.get());
}

void Profiler::begin(std::string_view label, CUstream stream) {
    if (DeviceProfiler* const device = device_of(stream)) device->begin(label, stream);
}

void Profiler::end(std::string_view label, CUstream stream) {
    if (DeviceProfiler* const device = device_of(stream)) device->end(label, stream);
}

void Profiler::iteration(CUstream stream) {
    if (DeviceProfiler* const device = device_of(stream)) device->iteration(stream);
}

void Profiler::finish() {
    for (DeviceProfiler* device : in_order_) {
        if (device->is_finished()) continue;
        try {
            device->finish();
        } catch (const std::exception& error) {
            device->note(std::string("the last iterations are lost: ") + error.what());
        }
    }
}

bool Profiler::is_finished() const {
    bool is_any = false;
    for (const DeviceProfiler* device : in_order_) {
        if (!device->has_iterations()) continue;
        if (!device->is_finished()) return false;
        is_any = true;
    }
    return is_any;
}

Recording Profiler::recording() const {
    Recording recording{schedule_.first, schedule_.end, !in_order_.empty(), {}};
    for (const DeviceProfiler* device : in_order_) {
        recording.is_complete = recording.is_complete && device->is_complete();
        recording.devices.push_back(device->recorded());
    }
    std::ranges::sort(recording.devices, {}, &RecordedDevice::id);
    return recording;
}

}  // namespace kbench::embedded
