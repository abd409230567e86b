// Reads a machine file.
#include "bench/command/machine_path.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "kbench/error.h"

namespace kbench {

MachineFile machine_at(const std::string& what) {
    if (!what.ends_with(".json")) return machine(what);
    std::ifstream file(what, std::ios::binary);
    std::stringstream text;
    if (!file || !(text << file.rdbuf())) throw UsageError(fmt::format("machine file {}: cannot be read", what));
    return parse_machine(text.str(), what);
}

}  // namespace kbench
