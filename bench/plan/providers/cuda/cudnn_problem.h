// A convolution or a gradient of one, as cuDNN is asked for it.
#pragma once

#include <string>

#include "kbench/precision.h"
#include "kbench/step.h"
#include "models/ops/conv2d.h"

namespace kbench::cudnn {

/// fwd, dgrad or wgrad; wgrad overwrites.
struct ConvolutionProblem {
    Conv2d op;
    Direction direction = Direction::fwd;
    Precision precision = Precision::fp32;

    Step step() const { return Step::of(op, direction); }
    /// "conv2d n8c32h81w500k32r21s11b", "conv2d dgrad n8c32h81w500k32r21s11", as which every dgrad of the shape is
    /// known: with a bias or without. Plans are remembered by it.
    std::string text() const;
};

}  // namespace kbench::cudnn
