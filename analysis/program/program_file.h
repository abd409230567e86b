// What one process of a profiled program wrote: a line of JSON for each kernel, launch call, range, mark and counter,
// in format "kbench.program/1". Here it is read; iterations.h and layers.h say what it means.
//
//     for (const kbench::ProgramFile& file : kbench::read_program_files("out")["records"])
//         std::cout << file.process.pid << ": " << file.activities.size() << " kernels, copies and fills\n";
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kbench {

/// Times are nanoseconds of one clock for host and device. Ids of texts and ranges count from 1; 0 is none.
struct ProgramProcess {
    std::string purpose;  ///< "records", "bare", "names" or "counters"
    std::int64_t pid = 0;
    std::optional<std::int64_t> rank;  ///< only where a launcher of several processes set it
    std::vector<std::string> arguments;
    std::int64_t start_ns = 0;
};

struct ProgramDevice {
    int id = 0;
    std::string name, uuid;
    std::array<std::int64_t, 2> capability{};
    int multiprocessors = 0;
};

/// A range of NVTX on one thread; `end_ns` is 0 where it was still open at the end.
struct ProgramRange {
    std::int64_t id = 0, parent = 0, text = 0, thread = 0, start_ns = 0, end_ns = 0;
};

/// A call of the host that launches a kernel or a graph. `index` counts all such calls of the process from 0.
struct ProgramLaunch {
    std::int64_t index = 0, correlation = 0, thread = 0, start_ns = 0, end_ns = 0, range = 0;
    std::string call = {};
    std::string inner = {};  ///< the launch call that it made in turn, as the runtime makes the driver's
};

enum class ActivityKind { kernel, copy, fill };

/// What a GPU did: a kernel, a copy, or a fill of memory.
struct ProgramActivity {
    ActivityKind kind = ActivityKind::kernel;
    /// The launch call's; all kernels of a graph launch share it. `graph_node` rises in the order of capture, and is 0
    /// outside of graphs. `range`: the innermost one at the launch, or where a graph's node was captured.
    std::int64_t correlation = 0, graph_node = 0, range = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    int device = 0, stream = 0;
    std::int64_t name = 0;  ///< the mangled name's text, of a kernel
    std::array<std::int64_t, 3> grid{}, block{};
    int registers = 0, cluster = 1;
    std::int64_t static_shared = 0, dynamic_shared = 0, local = 0;
    std::int64_t bytes = 0;                  ///< moved or filled
    std::string what = {};                   ///< a copy's direction, such as "HtoD"
    std::array<std::string, 2> memory = {};  ///< kinds of memory that a copy reads and writes, such as "pageable"
};

/// When the launch call with that index began: on the host, and where it was marked there, when the GPU came to it.
struct ProgramMark {
    std::int64_t launch = 0, at_ns = 0;
    std::optional<double> gpu_ms = {};  ///< since the process's first such mark
    bool recorded = false;              ///< whether there are records of what follows, in a bare run
};

/// How the note begins that says why a process has no counters.
inline constexpr std::string_view nothing_was_counted = "nothing was counted: ";

/// Hardware counters of an iteration whose first launch is `first_launch`, counted in that many passes.
struct CountedIteration {
    std::vector<std::string> counters;
    int passes = 0;
    double seconds = 0;
    std::int64_t first_launch = 0;
    struct Range {
        std::int64_t launch = 0;                    ///< from the iteration's first
        std::vector<std::optional<double>> values;  ///< as many as counters; none: the device gave none
    };
    std::vector<Range> ranges;
};

struct ProgramFile {
    std::string path;
    ProgramProcess process;
    std::vector<ProgramDevice> devices;
    std::unordered_map<std::int64_t, std::string> texts;
    std::vector<ProgramRange> ranges;
    std::unordered_map<std::int64_t, std::size_t> range_places;  ///< by id
    std::vector<ProgramLaunch> launches;                         ///< by index
    std::vector<ProgramActivity> activities;                     ///< by correlation, graph node and start
    std::vector<ProgramMark> marks;                              ///< by time
    std::vector<CountedIteration> counted;
    std::vector<std::string> notes;  ///< what the user should know
    std::int64_t dropped = 0;        ///< records that the profiler lost
    bool ended = false;              ///< whether the process wrote its last line

    /// The text with that id, which the file has; empty for 0.
    const std::string& text(std::int64_t id) const;
    /// The range with that id; null for 0.
    const ProgramRange* range(std::int64_t id) const;
};

/// Reads the lines of `input`, which `path` names in errors. Unknown members and kinds of lines are ignored. A last
/// line that was cut, because the process died, becomes a note. Throws UsageError, one line with `path` and the number
/// of the line, where something is malformed.
ProgramFile read_program_file(std::istream& input, const std::string& path);

/// All `.jsonl` files in `folder`, by purpose; within it by rank, then by pid. Throws UsageError where the folder or a
/// file cannot be read, where there is none, or where one is malformed.
std::map<std::string, std::vector<ProgramFile>> read_program_files(const std::filesystem::path& folder);

}  // namespace kbench
