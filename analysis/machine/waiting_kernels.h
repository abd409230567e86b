// Kernels of communication libraries: each waits on the GPU until other ranks have launched theirs.
#pragma once

#include <string>

namespace kbench {

/// Whether a kernel of this name, mangled or not, waits for kernels of other ranks. The table in waiting_kernels.cpp
/// is all that is known: a kernel of another name that waits is not told from one that does not.
bool waits_for_other_ranks(const std::string& kernel);

}  // namespace kbench
