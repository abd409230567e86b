// A program run to its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

struct Finished {
    int exit_code = 0;      ///< 128 and its number where a signal ended it
    std::string last_line;  ///< what it wrote last, where it failed; empty where it wrote nothing
    double wall_ms = 0;     ///< from its start to its end
};

/// Which of what a program writes goes to its log.
enum class Logged { errors, all };

/// Runs `program`, searched for in $PATH, with what it writes going to `log`, a new file. Its environment is this
/// process's with `variables`, each "NAME=value", in place of those of these names. It is a session of its own
/// and cannot ask on the terminal. A stop that this process is asked for (StopSignals) is passed on to its process
/// group. What it leaves behind in that group has a second to end. Throws UsageError when it cannot be started, and
/// `log` is not there then.
Finished run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log, Logged logged = Logged::errors,
                   const std::vector<std::string>& variables = {});

/// Whether a shell would find a program of this name.
bool is_program(const std::string& name);

/// Throws MeasurementError where a stop was asked for.
void throw_if_stopped();

/// The result of a kbench, this one where `program` is empty, that runs `arguments` with `directory` as its --out,
/// which must not exist yet. Keeps only the result and the drawn lengths there, or everything where the run
/// fails. Errors begin with `who`: UsageError where it refuses the arguments, MeasurementError where it
/// fails otherwise or a stop was asked for.
Result run_for_result(const std::string& who, const std::string& program, std::vector<std::string> arguments,
                      const std::filesystem::path& directory);

}  // namespace kbench
