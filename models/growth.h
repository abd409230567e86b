// Larger and smaller steps of the same kind: what is run to see how much of a step's time grows with its size.
//
//     const kbench::Step step{{kbench::Gemm{1024, 3840, 1280}, kbench::BiasAdd{1024, 3840}}};
//     const auto grown = kbench::grown(step, 2);  // k 2560 and the same bias; grown->axis is "k"
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kbench/step.h"

namespace kbench {

struct GrownStep {
    Step step;
    std::string_view axis;  ///< the size of the head that grew
};

/// `step` with one of its head's sizes as many times as large, and the ops along with it as large as what they are
/// handed then: a product's longer sum leaves its bias as it is. Nothing where the head's kind names no such size, or
/// where an op along with it cannot follow. A part of a size that does not divide it is rounded down.
std::optional<GrownStep> grown(const Step& step, Scale factor);

}  // namespace kbench
