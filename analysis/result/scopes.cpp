// Reads prof.json, and adds up labels over streams and devices.
#include "analysis/result/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/result/json_fields.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using fields::Json;
using fields::Path;

constexpr std::string_view scopes_format = "kbench.scopes/1";

/// An object's members by name; others that it has are ignored.
class Members {
  public:
    Members(const Json& json, const Path& path) : json_(json), path_(path) {
        fields::expect(json.is_object(), path, "an object", json);
    }
    const Json& at(std::string_view name) const {
        const auto found = json_.find(name);
        fields::expect(found != json_.end(), path_.field(name), "a value", Json("nothing"));
        return *found;
    }
    template <class T>
    void read(T& value, std::string_view name, const fields::Rule& rule = {}) const {
        fields::read(value, at(name), path_.field(name), rule);
    }
    /// A time, and its interval and number of samples under names that begin with `prefix`.
    void read_mean(MeanTime& mean, std::string_view name, const std::string& prefix) const {
        const std::string low = prefix + "ci_low", high = prefix + "ci_high", n = prefix + "n";
        read(mean.ms, name, {.least = 0});
        read(mean.low, low);
        read(mean.high, high);
        read(mean.n, n);
        fields::expect(mean.ms.has_value() == (mean.n > 0), path_.field(n), mean.ms ? "samples" : "0 without a time",
                       Json(mean.n));
        const bool has_both = mean.low.has_value() == mean.high.has_value();
        fields::expect(has_both && (!mean.low || (mean.ms && *mean.low <= *mean.ms && *mean.ms <= *mean.high)),
                       path_.field(low), fmt::format("an interval around {}", name), at(low));
    }

  private:
    const Json& json_;
    const Path& path_;
};

MeasuredScope read_scope(const Json& json, const Path& path) {
    const Members members(json, path);
    MeasuredScope scope;
    members.read(scope.label, "label");
    members.read(scope.occurrence, "occurrence");
    members.read(scope.in_graph, "in_graph");
    members.read(scope.start_index, "start_index");
    members.read(scope.end_index, "end_index");
    members.read_mean(scope.time, "avg_measured_time_ms", "");
    members.read(scope.offset_ms, "avg_iter_start_to_event_start_time_ms");
    return scope;
}

ScopeDevice read_device(const Json& json, const Path& path) {
    const Members members(json, path);
    ScopeDevice device;
    members.read(device.id, "id");
    members.read(device.name, "name");
    members.read_mean(device.iteration, "avg_iter_time_ms", "iter_");
    members.read(device.notes, "notes");
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
    const Members members(json, at);
    const auto format = json.find("format");
    if (format == json.end() || *format != scopes_format)
        throw UsageError(fmt::format("{}: format: expected {}; kbench/profile.h writes it", path, scopes_format));
    ScopeProfile profile;
    profile.path = path;
    members.read(profile.host, "host_name");
    members.read(profile.rank, "rank");
    members.read(profile.arguments, "arguments");
    members.read(profile.is_complete, "complete");
    const Json& devices = members.at("devices");
    const Path of_devices = at.field("devices");
    fields::expect(devices.is_array(), of_devices, "an array", devices);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        ScopeDevice device = read_device(devices[i], of_devices.element(i));
        const bool is_new = std::ranges::count(profile.devices, device.id, &ScopeDevice::id) == 0;
        fields::expect(is_new, of_devices.element(i).field("id"), "each device once", Json(device.id));
        profile.devices.push_back(std::move(device));
    }
    read_timeline(profile, members.at("timeline"), at.field("timeline"));
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
    for (const std::string& label : scope_labels({&run, 1})) {
        const auto found = by_device.find(label);
        if (found == by_device.end()) continue;
        double sum = 0;
        for (const double ms : found->second) sum += ms;
        times.push_back({label, sum / static_cast<double>(found->second.size()), std::ranges::max(found->second)});
    }
    return times;
}

std::vector<std::string> scope_labels(std::span<const ScopeRun> runs) {
    std::vector<std::string> labels;
    for (const ScopeRun& run : runs)
        for (const ScopeProfile& process : run.processes)
            for (const ScopeDevice& device : process.devices) {
                std::vector<std::pair<double, std::string>> begins;
                for (const ScopeStream& stream : device.streams)
                    for (const MeasuredScope& scope : stream.scopes)
                        begins.emplace_back(scope.offset_ms.value_or(0), scope.label);
                std::ranges::stable_sort(begins, {}, &std::pair<double, std::string>::first);
                auto behind = labels.begin();
                for (const auto& [at, label] : begins) {
                    const auto known = std::ranges::find(labels, label);
                    behind = known != labels.end() ? std::max(behind, known + 1) : labels.insert(behind, label) + 1;
                }
            }
    return labels;
}

}  // namespace kbench
