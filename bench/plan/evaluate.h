// A step's expected outputs from the reference: the bridge between step kinds and cpu/reference.
#pragma once

#include <span>
#include <vector>

#include "bench/plan/step.h"
#include "cpu/reference/reference.h"

namespace kbench {

/// Expected values of output operand `output` (an index into operands(kind)) at `elements`, sorted by row. `views` is
/// parallel to operands(kind): what each operand holds before the step runs; outputs may be empty views.
std::vector<reference::Expected> evaluate(const StepKind& kind, std::size_t output,
                                          std::span<const reference::View> views,
                                          std::span<const reference::Element> elements);

}  // namespace kbench
