// A fault on request: a kbench that is built for tests alone does what the environment says, once it gets there.
#pragma once

#include <cstdint>
#include <string>

namespace kbench::faults {

/// KBENCH_FAULT, such as "segfault at 32 rows from call 2": what is done by the `call`-th call of the layer norm of so
/// many rows, from 1, and all after it. Empty `what`: nothing.
struct Fault {
    std::string what;
    std::int64_t rows = 0;
    int call = 1;
};
const Fault& asked();

/// Counts the calls of a layer norm of so many rows. Whether this one is to fail, and `what` is how.
bool is_due(std::int64_t rows, const char* what);

}  // namespace kbench::faults
