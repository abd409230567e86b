// A point that is to be measured: its place on each axis, and what it is called.
#pragma once

#include <cstdint>
#include <string>

#include "kbench/axes.h"

namespace kbench {

/// A batch asked for as "max": the largest that fits into memory.
inline constexpr std::int64_t max_batch = 0;

/// One point to measure.
struct PointSpec {
    AxisValues axes;  ///< all that options decide, and the repeat; a batch may be max_batch

    /// "seq128-batch4-fp16", "seq128-batchmax-fp16-repeat2": distinct within a sweep, and fit for a file's name.
    std::string name() const;
    bool operator==(const PointSpec&) const = default;
};

}  // namespace kbench
