// Microbenchmarks as Google Benchmark's: its repetitions, formats and files, kbench's sampler and columns.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/micro/session.h"

namespace kbench {

/// Those of `cases` whose name --benchmark_filter among `arguments` matches (a POSIX extended regular expression found
/// anywhere in the name; behind a "-", those that it does not match), and takes that argument out. Google Benchmark
/// would match names that end in "/manual_time". Throws UsageError: no regular expression, or nothing matches.
std::vector<MicroCase> filter_cases(std::vector<MicroCase> cases, std::vector<std::string>& arguments);

/// Whether --benchmark_list_tests is among `arguments`.
bool lists_only(const std::vector<std::string>& arguments);

/// How a list of benchmarks ended: empty where nothing of the kind happened.
struct BenchmarksEnd {
    std::string first_wrong;  ///< that failed, and why
    std::string device_lost;  ///< the one in which it was, and the error
    std::string file, text;   ///< --benchmark_out's, and what it is to hold: the caller writes it
};

/// Runs `cases` as `arguments` (Google Benchmark's, the program's name first) say. `metrics` become further columns,
/// `context` stands in the JSON's context; the console is `width` columns wide, without one as wide as its lines.
/// `finished` is called after each call of a benchmark. Those left when a stop was asked for (stop_signal.h), or the
/// device was lost, are not run, and rows of JSON and CSV that say so. One that nobody computes did not fail. Throws
/// UsageError for an argument that Google Benchmark does not know.
BenchmarksEnd run_benchmarks(MicroSession& session, std::span<const MicroCase> cases,
                             std::vector<std::string> arguments, std::span<const std::string> metrics,
                             const std::map<std::string, std::string>& context, std::optional<std::size_t> width,
                             const std::function<void()>& finished);

}  // namespace kbench
