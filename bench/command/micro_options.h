// The options of `kbench micro`, one table: parsing, help text and docs/micro.md all come from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/device_options.h"
#include "bench/command/option_table.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/micro/session.h"

namespace kbench {

struct MicroRequest {
    std::vector<std::string> ops, shapes, providers;
    std::string shapes_file, model, suite;
    DeviceRequest device;
    std::vector<std::int64_t> heads, head_sizes;
    AxisLists axes;                     ///< for a model's ops; batch and seq for attention, too
    std::vector<Direction> directions;  ///< empty: fwd, and what a line of a file or a suite names
    std::vector<Precision> precisions{all_precisions.begin(), all_precisions.end()};
    std::vector<CacheState> caches{CacheState::cold, CacheState::hot};
    CeilingRequest ceilings;
    std::filesystem::path out;
    bool compress = false;  ///< result.json.gz
    PointOptions run;
    double device_s = 0.05;  ///< to spend in timed runs, at the least
    bool retune = false, quiet = false;
};
std::span<const OptionOf<MicroRequest>> micro_options();

/// docs/micro.md: the options, the columns and the suites, from their tables.
std::string micro_markdown();

/// `benchmark_arguments`: those that begin with "--benchmark_" or are "--v=N", for Google Benchmark, after the name of
/// the program; `help` is set to its text where that was asked for.
struct ParsedMicro {
    MicroRequest request;
    std::vector<std::string> benchmark_arguments;
    std::string help;
};
/// Parses `arguments` (without the command's name). Throws UsageError.
ParsedMicro parse_micro(const std::vector<std::string>& arguments);

/// The problems that a request names: shapes, a file, a model's or a suite's; else the usual model's at its usual
/// sequence length. `ops` picks among them. Throws UsageError.
std::vector<AskedProblem> asked_problems(const MicroRequest& request);

}  // namespace kbench
