// A problem: one op alone, or with what a provider may fuse to it, at one shape, as microbenchmarks and files of shapes
// name it. Problems become small models, so that all that runs and measures models runs and measures them too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace kbench {

/// The ops in order; each consumes what the one before it makes. At least one.
struct Problem {
    std::vector<Op> ops;
    bool operator==(const Problem&) const = default;
};

/// The op that names the problem: "gemm" for a GEMM with bias and GELU.
std::string_view op_name(const Problem& problem);

/// "m1024n3840k1280", with a "t" where the weight is [n, k], "+bias", "+gelu", "+residual" where they follow;
/// "b1h20s1024d64" of attention; "r1024w1280" of what works row by row.
std::string shape_text(const Problem& problem);
std::string shape_text(const Op& op);

/// The inverse of `shape_text` for the op kind called `op`. Throws UsageError that shows a right shape.
///   gemm       m<rows>n<columns>k<inner>[t][+bias][+gelu or +residual]
///   attention, attention_scores, scale_mask, attention_context   b<batch>h<heads>s<seq>d<head size>[+upcast]
///   embedding  r<rows>w<width>v<vocabulary>[s<seq>]
///   layernorm  r<rows>w<width>[+bias][+residual]
///   gelu       r<rows>w<width>[+bias]
///   bias, residual, softmax   r<rows>w<width>
/// A scale_mask scales by -1, which leaves the size of data alone that it works on in place again and again; attention
/// by 1 / sqrt(head size).
Problem parse_problem(std::string_view op, std::string_view shape);

/// The distinct ops of `model`, each a problem, in order of first use. Fused steps are not among them: which ops a
/// provider fuses differs by provider.
std::vector<Problem> problems_of(const Model& model);

/// `runs` times the problem, one after another, on `sets` sets of tensors in turn: with sets that together exceed a
/// cache several times each run finds it cold, with one set hot. Every tensor that outlives a run is resident. Layers
/// are called "run.0" and so on.
Model make_problem_model(const Problem& problem, std::int64_t sets, std::int64_t runs);

/// Bytes of all inputs, weights and outputs of one run in `precision`, without padding.
double problem_bytes(const Problem& problem, Precision precision);

}  // namespace kbench
