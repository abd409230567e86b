// Which machines stand together in a list of them: by kind and maker.
#pragma once

#include <span>
#include <string_view>

#include "analysis/machine/machine.h"

namespace kbench {

/// The groups in the order in which they are shown, such as "NVIDIA data centre GPU" and "Intel CPU".
std::span<const std::string_view> machine_groups();
/// The group of `machine`, by its kind and by how its name begins. A maker without a group of its own is in "other GPU"
/// or "other CPU". Throws std::invalid_argument where the kind is neither gpu nor cpu, which parse_machine refuses.
std::string_view machine_group(const MachineFile& machine);

}  // namespace kbench
