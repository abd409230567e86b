// Connectionist temporal classification of cuDNN.
#pragma once

#include <memory>
#include <string>

#include "kbench/provider.h"
#include "models/ops/ctc.h"

struct cudnnContext;

namespace kbench::cudnn {

/// Why cuDNN does not take it; empty where it does.
std::string no_such_ctc(const Ctc& op, const Step& step, Precision precision);

/// fwd or bwd. `one_order`: by the algorithm whose sums have one order, else by the other.
std::unique_ptr<Computation> make_ctc(const Ctc& op, Direction direction, const std::shared_ptr<cudnnContext>& handle,
                                      bool one_order);

}  // namespace kbench::cudnn
