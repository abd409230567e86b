// Machine files of users, read from disk; those that kbench comes with are analysis/machine/machine.h's.
#pragma once

#include <string>

#include "analysis/machine/machine.h"

namespace kbench {

/// `what` is an id of `kbench list machines`, or the path of a machine file, which ends in .json. Throws UsageError: no
/// such id or file, or a file that parse_machine refuses.
MachineFile machine_at(const std::string& what);

}  // namespace kbench
