// When iterations begin, without records: on the host, and on the GPU by an event before the first launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

namespace kbench::attach {

/// The call with which an iteration begins is about to be made, on `stream` where that is known. `recorded`: there are
/// records of what follows.
void mark_iteration(std::uint64_t launch, std::uint64_t at_ns, std::optional<CUstream> stream, bool recorded);
/// At the end, while the GPU can still be asked: writes all marks.
void write_marks();

}  // namespace kbench::attach
