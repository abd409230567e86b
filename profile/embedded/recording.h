// What the embedded profiler has measured so far, and how it is written: prof.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kbench::embedded {

/// One scope of an iteration. Times are milliseconds.
struct RecordedScope {
    std::string label, stream;
    int occurrence = 0;  ///< which of those with this label on this stream, in an iteration or a graph
    bool in_graph = false;
    std::int64_t start_index = 0;           ///< place of its begin among all begins and ends of the iteration or graph
    std::optional<std::int64_t> end_index;  ///< and of its end; nothing where it did not end in the same one
    std::vector<double> measured_ms, offset_ms;  ///< its time, and from the iteration's start to its own
};

struct RecordedDevice {
    int id = 0;
    std::string name;
    std::vector<double> iteration_ms;
    std::vector<RecordedScope> scopes;
    std::vector<std::string> notes;  ///< what could not be measured, and why
};

/// What one process measured.
struct Recording {
    std::int64_t first = 0;  ///< iteration of the schedule
    std::optional<std::int64_t> end;
    bool is_complete = false;  ///< all scopes were measured as often as asked, or the window ended
    std::vector<RecordedDevice> devices;
};

std::string recording_json(const Recording& recording);

/// Writes prof.json, of a process with a rank prof.RANK.json, into `folder`, made if need be; the file is complete or
/// as it was. Returns its path. Throws std::runtime_error.
std::string write_recording(const Recording& recording, const std::string& folder);

}  // namespace kbench::embedded
