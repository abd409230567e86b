// Reads prof.json, and adds up labels over streams and devices.
#include "analysis/result/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/result/json_fields.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using fields::Json;
using fields::Path;

constexpr std::string_view scopes_format = "kbench.scopes/1";

const Json& member_of(const Json& object, const Path& path, const char* name) {
    const auto found = object.find(name);
    fields::expect(found != object.end(), path.field(name), "a value", Json("nothing"));
    return *found;
}

template <class T>
T value_of(const Json& object, const Path& path, const char* name, const fields::Rule& rule = {}) {
    T read{};
    fields::read(read, member_of(object, path, name), path.field(name), rule);
    return read;
}

/// A time, and its interval and number of samples under names that begin with `prefix`.
MeanTime read_mean(const Json& object, const Path& path, const char* name, const std::string& prefix) {
    using Time = std::optional<double>;
    const std::string low = prefix + "ci_low", high = prefix + "ci_high", n = prefix + "n";
    MeanTime mean;
    mean.ms = value_of<Time>(object, path, name, {.least = 0});
    mean.low = value_of<Time>(object, path, low.c_str());
    mean.high = value_of<Time>(object, path, high.c_str());
    mean.n = value_of<std::int64_t>(object, path, n.c_str());
    fields::expect(mean.ms.has_value() == (mean.n > 0), path.field(n), mean.ms ? "samples" : "0 without a time",
                   Json(mean.n));
    const bool has_both = mean.low.has_value() == mean.high.has_value();
    fields::expect(has_both && (!mean.low || (mean.ms && *mean.low <= *mean.ms && *mean.ms <= *mean.high)),
                   path.field(low), fmt::format("an interval around {}", name), object.at(low));
    return mean;
}

MeasuredScope read_scope(const Json& json, const Path& path) {
    fields::expect(json.is_object(), path, "an object", json);
    MeasuredScope scope;
    scope.label = value_of<std::string>(json, path, "label");
    scope.occurrence = value_of<std::int64_t>(json, path, "occurrence");
    scope.in_graph = value_of<bool>(json, path, "in_graph");
    scope.start_index = value_of<std::int64_t>(json, path, "start_index");
    scope.end_index = value_of<std::optional<std::int64_t>>(json, path, "end_index");
    scope.time = read_mean(json, path, "avg_measured_time_ms", "");
    scope.offset_ms = value_of<std::optional<double>>(json, path, "avg_iter_start_to_event_start_time_ms");
    return scope;
}

ScopeDevice read_device(const Json& json, const Path& path) {
    fields::expect(json.is_object(), path, "an object", json);
    ScopeDevice device;
    device.id = value_of<std::int64_t>(json, path, "id");
    device.name = value_of<std::string>(json, path, "name");
    device.iteration = read_mean(json, path, "avg_iter_time_ms", "iter_");
    device.notes = value_of<std::vector<std::string>>(json, path, "notes");
    return device;
}

void read_timeline(ScopeProfile& profile, const Json& timeline, const Path& path) {
    fields::expect(timeline.is_object(), path, "an object", timeline);
    for (const auto& [id, streams] : timeline.items()) {
        const Path of_device = path.field(id);
        const auto device = std::ranges::find_if(
            profile.devices, [&, &key = id](const ScopeDevice& one) { return std::to_string(one.id) == key; });
        fields::expect(device != profile.devices.end(), of_device, "a device of 'devices'", Json("another one"));
        fields::expect(streams.is_object(), of_device, "an object", streams);
        for (const auto& [name, scopes] : streams.items()) {
            const Path of_stream = of_device.field(name);
            fields::expect(scopes.is_array(), of_stream, "an array", scopes);
            ScopeStream& stream = device->streams.emplace_back();
            stream.name = name;
            for (std::size_t i = 0; i < scopes.size(); ++i)
                stream.scopes.push_back(read_scope(scopes[i], of_stream.element(i)));
        }
    }
}

}  // namespace

bool MeasuredScope::is_within(const MeasuredScope& other) const {
    return in_graph == other.in_graph && end_index && other.end_index && other.start_index < start_index &&
           *end_index < *other.end_index;
}

std::size_t ScopeStream::depth(const MeasuredScope& scope) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(scopes, [&](const MeasuredScope& other) { return scope.is_within(other); }));
}

std::string ScopeStream::title(const MeasuredScope& scope) const {
    if (std::ranges::count(scopes, scope.label, &MeasuredScope::label) < 2) return scope.label;
    return fmt::format("{} #{}", scope.label, scope.occurrence + 1);
}

std::size_t ScopeRun::device_count() const {
    std::size_t count = 0;
    for (const ScopeProfile& process : processes) count += process.devices.size();
    return count;
}

std::size_t ScopeRun::host_count() const {
    std::set<std::string> hosts;
    for (const ScopeProfile& process : processes) hosts.insert(process.host);
    return hosts.size();
}

MeanTime ScopeRun::iteration() const {
    MeanTime slowest;
    for (const ScopeProfile& process : processes)
        for (const ScopeDevice& device : process.devices)
            if (device.iteration.ms && (!slowest.ms || *device.iteration.ms > *slowest.ms)) slowest = device.iteration;
    return slowest;
}

ScopeProfile parse_scope_profile(const std::string& text, const std::string& path) {
    check_json_text(text, path, most_ordered_members);
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw UsageError(fmt::format("{}: not JSON; a file of kbench/profile.h is", path));
    const Path at{path};
    fields::expect(json.is_object(), at, "an object", json);
    const auto format = json.find("format");
    if (format == json.end() || *format != scopes_format)
        throw UsageError(fmt::format("{}: format: expected {}; kbench/profile.h writes it", path, scopes_format));
    ScopeProfile profile;
    profile.path = path;
    profile.host = value_of<std::string>(json, at, "host_name");
    profile.rank = value_of<std::optional<std::int64_t>>(json, at, "rank");
    profile.arguments = value_of<std::vector<std::string>>(json, at, "arguments");
    profile.is_complete = value_of<bool>(json, at, "complete");
    const Json& devices = member_of(json, at, "devices");
    const Path of_devices = at.field("devices");
    fields::expect(devices.is_array(), of_devices, "an array", devices);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        ScopeDevice device = read_device(devices[i], of_devices.element(i));
        const bool is_new = std::ranges::count(profile.devices, device.id, &ScopeDevice::id) == 0;
        fields::expect(is_new, of_devices.element(i).field("id"), "each device once", Json(device.id));
        profile.devices.push_back(std::move(device));
    }
    read_timeline(profile, member_of(json, at, "timeline"), at.field("timeline"));
    return profile;
}

std::vector<LabelTime> label_times(const ScopeRun& run) {
    std::vector<LabelTime> times;
    std::map<std::string, std::vector<double>> by_device;
    for (const ScopeProfile& process : run.processes)
        for (const ScopeDevice& device : process.devices) {
            std::map<std::string, double> sums;
            for (const ScopeStream& stream : device.streams)
                for (const MeasuredScope& scope : stream.scopes)
                    if (scope.time.ms && stream.depth(scope) == 0) sums[scope.label] += *scope.time.ms;
            for (const auto& [label, sum] : sums) by_device[label].push_back(sum);
        }
    for (const std::string& label : scope_labels({run})) {
        const auto found = by_device.find(label);
        if (found == by_device.end()) continue;
        double sum = 0;
        for (const double ms : found->second) sum += ms;
        times.push_back({label, sum / static_cast<double>(found->second.size()), std::ranges::max(found->second)});
    }
    return times;
}

std::vector<std::string> scope_labels(const std::vector<ScopeRun>& runs) {
    std::vector<std::string> labels;
    std::set<std::string> known;
    for (const ScopeRun& run : runs)
        for (const ScopeProfile& process : run.processes)
            for (const ScopeDevice& device : process.devices) {
                std::vector<std::pair<double, std::string>> begins;
                for (const ScopeStream& stream : device.streams)
                    for (const MeasuredScope& scope : stream.scopes)
                        begins.emplace_back(scope.offset_ms.value_or(0), scope.label);
                std::ranges::stable_sort(begins, {}, &std::pair<double, std::string>::first);
                for (const auto& [at, label] : begins)
                    if (known.insert(label).second) labels.push_back(label);
            }
    return labels;
}

}  // namespace kbench
