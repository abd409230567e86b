// Reads a machine file.
#include "bench/command/machine_path.h"

#include "bench/plan/data/read_file.h"

namespace kbench {

MachineFile machine_at(const std::string& what) {
    if (!what.ends_with(".json")) return machine(what);
    return parse_machine(read_whole_file(what), what);
}

}  // namespace kbench
