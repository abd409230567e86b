// The name of a point in reports.
#pragma once

#include <string>

#include "analysis/result/result.h"

namespace kbench {

/// "gpt2-large, batch 1, seq 1024, fp16, cuda", and the direction and the attention where they are not the usual ones;
/// "(max)" after a batch that was asked for so, and the number of a repeat from the second on.
std::string point_name(const Point& point);

}  // namespace kbench
