// A rung of kbench's own GEMM as a computation, for the rungs' own providers and for `native`.
#pragma once

#include <memory>
#include <string>

#include "bench/plan/provider.h"
#include "kernels/gemm/ladder/ladder.h"

namespace kbench {

/// Empty when `rung` computes the step; otherwise why not: it has products only, without an epilogue.
std::string ladder_unsupported(cuda::GemmRung rung, const GemmStep& step, Precision precision);

std::unique_ptr<Computation> make_ladder_gemm(cuda::GemmRung rung, const GemmStep& step, Precision precision);

}  // namespace kbench
