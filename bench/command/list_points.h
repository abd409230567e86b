// A sweep as independent commands, for whatever runs commands on many machines.
#pragma once

#include <string>
#include <vector>

#include "bench/command/options.h"

namespace kbench {

/// `kbench run` for each point, one a line, with all other options as given, quoted for a POSIX shell, into a directory
/// of its own: OUT/points.d/NAME. Each goes on where it was interrupted when it is run again. Throws UsageError for a
/// value that does not fit on a line.
std::vector<std::string> point_commands(const RunRequest& request);

/// `text` as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

}  // namespace kbench
