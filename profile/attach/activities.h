// What the GPU did, from CUPTI's activity records: a line for each kernel, copy and fill.
#pragma once

#include <cstdint>

namespace kbench::attach {

/// From now on every kernel, copy and fill that is launched is recorded. Throws DeviceError.
void start_records();
/// Nothing more is recorded from what is launched until start_records() is called again.
void stop_records();
/// Waits for the records of all work that has ended.
void flush_records();
/// Records that CUPTI lost.
std::uint64_t dropped_records();

/// The innermost range in which the call with this correlation was made, and in which a graph's node was captured.
void set_range_of_call(std::uint32_t correlation, std::uint32_t range);
void set_range_of_node(std::uint64_t node, std::uint32_t range);
/// `node` does what `original` does, in another graph.
void copy_range_of_node(std::uint64_t node, std::uint64_t original);

}  // namespace kbench::attach
