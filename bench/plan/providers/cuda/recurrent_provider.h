// Recurrent layers, step by step or with resident weights, and their backward, as rows of `native`.
#pragma once

#include <vector>

#include "bench/plan/provider.h"

namespace kbench {

/// Rows for all cells. Gradients of weights are products of cuBLASLt.
std::vector<ProviderOp> recurrent_rows(const ProviderContext& context);

}  // namespace kbench
