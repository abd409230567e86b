// The tables of the terminal summary, each a pure function of a point or of all points.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/explain/explain.h"
#include "kbench/result.h"

namespace kbench {

/// One row for each kind of time taken end to end: the CUDA graph, the stream, enqueue, the copies. Needs end_to_end.
std::string latency_table(const Point& point, std::size_t width);

/// The answer's sentences and the lines of the ledger; empty where the point has no ledger.
std::string why_block(const Explanation& explanation, std::size_t width);

/// Where the time goes by op kind and provider, and the sum of the steps against the time end to end.
std::string op_table(const Point& point, std::size_t width);

/// The slowest layers, the same layer of all blocks summed.
std::string layer_table(const Point& point, std::size_t width);

/// What the hardware did in the slowest layers, the same layer of all blocks as one: launch, occupancy, traffic, pipes.
/// Empty without kernels or counters.
std::string hardware_table(const Point& point, std::size_t width);

/// One row for each point of a sweep.
std::string sweep_table(std::span<const Point> points, std::size_t width);

}  // namespace kbench
