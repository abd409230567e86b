// What the embedded profiler measures, and when: prof.schedule, a file of lines. The library reads it, and
// `kbench profile schedule` writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::embedded {

/// Labels that a line names: `*` stands for any text, `?` for any character, and a backslash takes the next one as it
/// is.
struct ScheduledScope {
    std::string glob;
    std::int64_t start = 0;  ///< no sooner than in this iteration
};

struct Schedule {
    std::int64_t first = 10;          ///< iterations count from 0
    std::optional<std::int64_t> end;  ///< the first that is not measured; without it until all are
    std::int64_t repeat = 50;         ///< measured iterations a scope
    bool stops = false;               ///< the program ends behind the last measurement
    std::string output;               ///< folder for prof.json; empty: where the program runs
    std::vector<ScheduledScope> scopes;

    /// The first line that names `label`, if any.
    std::optional<std::size_t> row(std::string_view label) const;
};

/// Longest file that is read, bytes.
inline constexpr std::size_t longest_schedule = 1 << 20;

/// Reads a schedule. Throws UsageError, one line with `path` and the number of the line that is wrong.
Schedule parse_schedule(std::string_view text, const std::string& path);

/// "A:B" or "A:" as `iterations` has it. Throws UsageError that begins with `where`.
void set_iterations(Schedule& schedule, std::string_view text, const std::string& where);
/// A number of measured iterations a scope. Throws UsageError that begins with `where`.
void set_repeat(Schedule& schedule, std::string_view text, const std::string& where);
/// A folder for prof.json, without spaces at its ends, which a line does not keep. Throws UsageError that begins with
/// `where`.
void set_output(Schedule& schedule, std::string_view text, const std::string& where);
/// Labels to measure, "GLOB" or "GLOB start N". Throws UsageError that begins with `where`.
void add_scope(Schedule& schedule, std::string_view text, const std::string& where);

/// As the file has it; parse_schedule reads the same schedule from it.
std::string schedule_text(const Schedule& schedule);

bool matches(std::string_view glob, std::string_view label);
/// A glob that is `label` and nothing else. Control characters, which a line cannot hold, are `?`.
std::string glob_of(std::string_view label);

}  // namespace kbench::embedded
