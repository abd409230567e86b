// Chrome's trace events are written one a line, their times in microseconds.
#include "analysis/report/trace_events.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace kbench {
namespace {

using Json = TraceEvents::Json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Perfetto cuts a time to whole nanoseconds, and 0.8 % of them are a hair less than whole after its multiplication by
/// 1000: a slice would then reach a nanosecond out of the one around it. The next number up is cut to the right one.
double microseconds(Nanoseconds time) {
    double us = static_cast<double>(time) / 1000;
    while (static_cast<Nanoseconds>(us * 1000) < time) us = std::nextafter(us, std::numeric_limits<double>::infinity());
    return us;
}

Json event_of(std::string_view phase, int process, int track, std::string_view name) {
    return {{"ph", phase}, {"pid", process}, {"tid", track}, {"name", name}};
}

}  // namespace

Nanoseconds nanoseconds(double us) {
    constexpr double most = 1e12;  // eleven days: thousands of them fit into the type
    return std::isfinite(us) && std::abs(us) < most ? std::llround(us * 1000) : 0;
}

Json brief(double value) {
    if (!std::isfinite(value)) return nullptr;
    const double rounded = std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
    constexpr double most = 1e15;  // a whole number is written without ".0"
    if (std::abs(rounded) < most && rounded == std::round(rounded)) return static_cast<std::int64_t>(rounded);
    return rounded;
}

/// Names a process or a track and says where it stands among its like.
void TraceEvents::describe(std::string_view what, int process, int track, std::string_view name) {
    Json named = event_of("M", process, track, std::string(what) + "_name");
    named["args"]["name"] = name;
    Json sorted = event_of("M", process, track, std::string(what) + "_sort_index");
    sorted["args"]["sort_index"] = track > 0 ? track : process;
    events_.push_back(line_of(named));
    events_.push_back(line_of(sorted));
}

int TraceEvents::process(std::string_view name) {
    describe("process", ++processes_, 0, name);
    return processes_;
}

int TraceEvents::track(int process, std::string_view name) {
    describe("thread", process, ++tracks_, name);
    return tracks_;
}

void TraceEvents::slice(int process, int track, std::string_view name, Nanoseconds start, Nanoseconds end, Json args) {
    Json event = event_of("X", process, track, name);
    event["ts"] = microseconds(start);
    event["dur"] = microseconds(end - start);
    event["args"] = std::move(args);
    events_.push_back(line_of(event));
}

void TraceEvents::counters(int process, std::string_view name, Nanoseconds at, Json values) {
    Json event = event_of("C", process, 0, name);
    event["ts"] = microseconds(at);
    event["args"] = std::move(values);
    events_.push_back(line_of(event));
}

std::string TraceEvents::text(const Json& metadata) const {
    std::string text = "{\"displayTimeUnit\": \"ns\",\n\"otherData\": " + line_of(metadata) + ",\n\"traceEvents\": [";
    for (std::size_t i = 0; i < events_.size(); ++i) text += (i > 0 ? ",\n" : "\n") + events_[i];
    return text + "\n]}\n";
}

}  // namespace kbench
