// Microbenchmarks as Google Benchmark's: its filters, repetitions, formats and files, kbench's sampler and columns.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/micro/session.h"

namespace kbench {

/// What came of all of them.
struct MicroOutcome {
    std::size_t run = 0;      ///< benchmarks that were chosen, listed ones included
    std::string first_wrong;  ///< the first that failed, other than one that nobody computes; empty when none did
};

/// Registers every case and runs those that `arguments` (Google Benchmark's, the program's name first) choose.
/// `metrics` become further columns; `finished` is called after each. Output goes where Google Benchmark's goes. Throws
/// UsageError for an argument it does not know.
MicroOutcome run_benchmarks(MicroSession& session, std::span<const MicroCase> cases, std::vector<std::string> arguments,
                            std::span<const std::string> metrics, const std::function<void()>& finished);

}  // namespace kbench
