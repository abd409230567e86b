// A fault on request: a kbench that is built for tests alone does what the environment says, once it gets there.
#pragma once

#include <cstdint>
#include <string>

namespace kbench::faults {

/// KBENCH_FAULT, such as "segfault at 32 rows from call 2": the `call`-th call (from 1) of the layer norm of so many
/// rows does `what`, and so do all calls after it. An empty `what` does nothing.
struct Fault {
    std::string what;
    std::int64_t rows = 0;
    int call = 1;
};
const Fault& asked();

/// Counts the calls of a layer norm of so many rows. Says whether this one is to fail by `what`.
bool is_due(std::int64_t rows, const char* what);

}  // namespace kbench::faults
