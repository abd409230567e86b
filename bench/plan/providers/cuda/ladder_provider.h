// A rung of kbench's own GEMM as a row, for the rungs' own providers and for `native`.
#pragma once

#include "bench/plan/provider.h"
#include "kernels/gemm/ladder/ladder.h"

namespace kbench {

/// The row of a provider whose GEMM is the rung that `rung_for` gives for a precision: products only, without an
/// epilogue.
ProviderOp ladder_gemm(cuda::GemmRung (*rung_for)(Precision precision));

}  // namespace kbench
