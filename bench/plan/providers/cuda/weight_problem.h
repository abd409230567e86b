// A step's product as the GEMM kernels take it.
#pragma once

#include "bench/plan/step.h"
#include "kernels/gemm/problem.h"

namespace kbench {

/// The product and epilogue of `step`, padded columns included; the residual, which no GEMM provider adds, left out.
inline cuda::GemmProblem weight_problem(const GemmStep& step, Precision precision) {
    const Gemm& g = step.gemm;
    cuda::GemmProblem p{};
    p.precision = precision;
    p.m = g.m;
    p.n = step.padded_n;
    p.k = g.k;
    p.weight_transposed = g.weight_transposed;
    p.bias = step.bias;
    p.gelu = step.gelu;
    p.out_type = storage_type(precision);
    p.ld_x = g.k;
    p.ld_w = g.weight_transposed ? g.k : g.n;
    p.ld_out = step.padded_n;
    return p;
}

}  // namespace kbench
