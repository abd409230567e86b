// Batches whose sequences differ in length: what ops know of the lengths.
//
//     kbench::steps_of(101, 2, 80);        // 51 of 80 steps, the last one half filled
//     kbench::lengths_operand(batch, 500);  // the int32 operand `lengths` [batch, 1]
#pragma once

#include <algorithm>
#include <cstdint>

#include "kbench/op.h"

namespace kbench {

/// How many steps a sequence of `length` input frames takes when a step covers `frames_per_step` frames; a step that
/// is only partly filled counts. The result is within [0, steps], whatever `length` holds.
constexpr std::int64_t steps_of(std::int64_t length, std::int64_t frames_per_step, std::int64_t steps) {
    return std::clamp<std::int64_t>((length + frames_per_step - 1) / frames_per_step, 0, steps);
}

/// The operand `lengths` [batch, 1], in input frames. It defaults to `frames` for every sequence, because costs are
/// those of full lengths and must match what runs.
inline OperandSpec lengths_operand(std::int64_t batch, std::int64_t frames) { return counts("lengths", batch, frames); }

}  // namespace kbench
