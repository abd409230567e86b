// No machine files yet.
#include "analysis/machine.h"

namespace kbench {

const MachineFile* machine_of(const Environment&, std::string_view) { return nullptr; }

}  // namespace kbench
