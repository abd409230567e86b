// Sequences of a batch that are shorter than the longest one: what ops know of their lengths.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kbench/op.h"

namespace kbench {

/// Steps that a sequence of `length` input frames has where a step stands for `frames_per_step` of them: a begun step
/// counts. Within [0, steps], whatever `length` holds.
constexpr std::int64_t steps_of(std::int64_t length, std::int64_t frames_per_step, std::int64_t steps) {
    return std::clamp<std::int64_t>((length + frames_per_step - 1) / frames_per_step, 0, steps);
}

/// The operand `lengths` [batch, 1], in input frames: all as long as `frames` where nobody says otherwise, so that
/// costs, which are those of full lengths, are of what runs.
inline OperandSpec lengths_operand(std::int64_t batch, std::int64_t frames) {
    OperandSpec lengths = input("lengths", batch, 1);
    lengths.element = ElementType::int32;
    lengths.contents = Contents::of({static_cast<double>(frames)});
    lengths.contents.bound = frames + 1;
    return lengths;
}

}  // namespace kbench
