// Where new tokens stand in their sequences: an operand on the device, so that one captured graph serves every token.
//
//     kbench::positions_operand(batch, 1023);  // the int32 operand `positions` [batch, 1], each 1023 unless set
#pragma once

#include "kbench/op.h"

namespace kbench {

/// The operand `positions` [sequences, 1]: the position of each sequence's first new token, which is the number of
/// tokens before it. It defaults to `last` for every sequence, because costs are those of so many; none is larger.
inline OperandSpec positions_operand(std::int64_t sequences, std::int64_t last) {
    return counts("positions", sequences, last);
}

}  // namespace kbench
