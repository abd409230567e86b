// The name of a point in reports.
#pragma once

#include <string>

#include "analysis/result.h"

namespace kbench {

/// "gpt2-large, batch 1, seq 1024, fp16, cuda", and the direction and the attention where they are not the usual ones.
std::string point_name(const Point& point);

}  // namespace kbench
