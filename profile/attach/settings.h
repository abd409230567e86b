// What an injected process is asked to do, as `kbench attach` says it in the environment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::attach {

/// Each run of a program has one: what disturbs it differs.
enum class Purpose {
    records,   ///< kernels, copies and fills as they ran, and the calls that launched them
    bare,      ///< only when each iteration began; of some in turn also what records has
    names,     ///< as records, with all ranges
    counters,  ///< hardware counters, one pass an iteration
};
inline constexpr std::array<std::string_view, 4> purpose_names{"records", "bare", "names", "counters"};
constexpr std::string_view name(Purpose purpose) { return purpose_names[static_cast<std::size_t>(purpose)]; }

struct Settings {
    Purpose purpose = Purpose::records;
    bool keeps_records() const { return purpose == Purpose::records || purpose == Purpose::names; }
    std::string directory;  ///< where the process's file goes
    /// The only launch call that is heard in a bare run, by its name; empty: all. Who hears less disturbs less. The
    /// `call_first`-th of them, from 0, is in the first iteration, and each iteration has `call_period`.
    std::string call;
    std::uint64_t call_first = 0, call_period = 0;
    std::uint64_t first_launch = 0;  ///< index of the launch call with which the first iteration begins
    std::uint64_t period = 0;        ///< launch calls of an iteration; 0: not known
    /// A bare run has records of every other block of so many iterations: then what records add is known in turn, on a
    /// machine as it was at that time. 0: of none.
    std::uint64_t block = 0;
    std::vector<std::string> counters;    ///< as CUPTI spells them
    std::size_t ranges = 0;               ///< in an iteration
    bool ranges_of_calls = false;         ///< a range is a whole launch call, not a kernel
    std::vector<std::string> waiting;     ///< mangled names of kernels that wait for other ranks: their calls have none
    std::uint64_t most_pass_seconds = 0;  ///< a pass that takes longer hangs; 0: nothing tells
};

/// Read from KBENCH_ATTACH_PURPOSE, _DIR, _CALL, _CALL_FIRST, _CALL_PERIOD, _FIRST, _PERIOD, _BLOCK, _COUNTERS,
/// _RANGES, _RANGES_OF_CALLS, _WAITING and _MOST_PASS_SECONDS; each with _RANK behind it where this process has that
/// rank and such a variable is there. Nothing where this process is not attached to, or where they are malformed.
const std::optional<Settings>& settings();

}  // namespace kbench::attach
