// A step's product as the GEMM kernels take it.
#pragma once

#include "kbench/step.h"
#include "kernels/gemm/problem.h"
#include "models/ops/list.h"

namespace kbench {

/// The GELU of cuBLASLt's epilogues, the tanh form. gelu_fast differs from it by less than fp32 can tell, and fp64 has
/// no epilogue.
inline bool absorbs_gelu(const Step& step) { return step.absorbs<Gelu>() || step.absorbs<GeluFast>(); }

/// The product and epilogue of `step`, padded columns included.
inline cuda::GemmProblem weight_problem(const Gemm& g, const Step& step, Precision precision) {
    const std::int64_t columns = step.padded_columns > 0 ? step.padded_columns : g.n;
    cuda::GemmProblem p{};
    p.precision = precision;
    p.m = g.m;
    p.n = columns;
    p.k = g.k;
    p.weight_transposed = g.weight_transposed;
    p.bias = step.absorbs<BiasAdd>();
    p.gelu = absorbs_gelu(step);
    p.keeps_argument = p.gelu && step.keeps_results();
    p.out_type = storage_type(precision);
    p.ld_x = g.k;
    p.ld_w = g.weight_transposed ? g.k : g.n;
    p.ld_out = columns;
    return p;
}

/// A gradient's product, see Gemm::product, and epilogue: a bias's gradient in wgrad's, GELU's in dgrad's.
inline cuda::GemmProblem gradient_problem(const Gemm& g, const Step& step, Precision precision) {
    const Gemm::Product product = g.product(step.direction, step.padded_columns);
    cuda::GemmProblem p{};
    p.precision = precision;
    p.m = product.m;
    p.n = product.n;
    p.k = product.k;
    p.bias_gradient = step.absorbs<BiasAdd>();
    p.gelu_gradient = absorbs_gelu(step);
    p.x_transposed = product.left_transposed;
    p.weight_transposed = product.right_transposed;
    p.out_type = storage_type(precision);
    p.ld_x = product.left_stride;
    p.ld_w = product.right_stride;
    p.ld_out = product.out_stride;
    return p;
}

}  // namespace kbench
