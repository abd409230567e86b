// What a program that embeds the profiler (kbench/profile.h) measured: prof.json, a file for each process, and runs of
// several processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kbench {

/// A mean over samples, ms, and the ends of its 95 % interval; without samples it is nothing, and below two of them it
/// has no interval.
struct MeanTime {
    std::optional<double> ms, low, high;
    std::int64_t n = 0;
};

struct MeasuredScope {
    std::string label;
    std::int64_t occurrence = 0;  ///< which of those with this label on this stream, in an iteration or a graph
    bool in_graph = false;
    std::int64_t start_index = 0;           ///< place of its begin among all begins and ends of the iteration or graph
    std::optional<std::int64_t> end_index;  ///< and of its end; nothing where it did not end there
    MeanTime time;
    std::optional<double> offset_ms;  ///< from the begin of the iteration to its own

    /// Whether it lies within `other`, on the same stream.
    bool is_within(const MeasuredScope& other) const;
};

struct ScopeStream {
    std::string name;
    std::vector<MeasuredScope> scopes;  ///< as they first began

    /// In how many others a scope lies.
    std::size_t depth(const MeasuredScope& scope) const;
    /// The label, with its number where the stream has several of that label.
    std::string title(const MeasuredScope& scope) const;
};

struct ScopeDevice {
    std::int64_t id = 0;
    std::string name;
    MeanTime iteration;
    std::vector<std::string> notes;
    std::vector<ScopeStream> streams;
};

/// What one process measured.
struct ScopeProfile {
    std::string path, host;
    std::optional<std::int64_t> rank;
    std::vector<std::string> arguments;  ///< the program's
    bool is_complete = false;            ///< else the program ended before all was measured
    std::vector<ScopeDevice> devices;
};

/// Processes that ran together.
struct ScopeRun {
    std::string name;
    std::vector<ScopeProfile> processes;  ///< by rank; at least one

    std::size_t device_count() const;
    std::size_t host_count() const;
    /// The iteration of the slowest device, which the others wait for; nothing where none has one.
    MeanTime iteration() const;
};

/// Throws UsageError, one line that begins with `path`. Members that it does not know are ignored.
ScopeProfile parse_scope_profile(const std::string& text, const std::string& path);

/// A label's time in an iteration on the devices of a run, ms: several scopes of one label are added up, and those
/// within others of any label are left out.
struct LabelTime {
    std::string label;
    double average_ms = 0, maximum_ms = 0;  ///< over the devices that have it
};
/// In the order in which they first begin.
std::vector<LabelTime> label_times(const ScopeRun& run);

/// All labels of the runs once, in the order in which they first begin; one that earlier devices do not have stands
/// behind the one that it follows.
std::vector<std::string> scope_labels(std::span<const ScopeRun> runs);

}  // namespace kbench
