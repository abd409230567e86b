// What an op of a framework is in kbench's terms, and what it must do at the least, from the sizes of its arguments.
//
//     const kbench::OpWork work = kbench::op_work({.name = "aten::mm", .sizes = {{8, 4}, {4, 2}}}, 2);
//     work.kind;        // "gemm"
//     work.cost.flops;  // 128
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/program/frame_text.h"
#include "kbench/cost.h"
#include "kbench/op.h"

namespace kbench {

/// An op of the framework, and what its surroundings tell about it.
struct OpCall {
    std::string name;          ///< "aten::addmm"
    Sizes sizes = {};          ///< sizes of its arguments, in order
    std::string node = {};     ///< the node of the backward that calls it; empty in the forward
    std::string outer = {};    ///< the outermost op of the forward, which says what kind of cell a layer has
    Sizes forward_sizes = {};  ///< those of the forward op of `node`
    std::string kernel = {};   ///< a demangled name of what it launches, which may tell what sizes do not
};

struct OpWork {
    std::string kind = {};    ///< kbench's kind where there is one, else the op's name without its namespace
    bool known = false;       ///< whether the sizes tell the cost; else all below is 0
    Cost cost = {};           ///< FLOPs as kbench's own kinds count them (models/ops)
    double matrix_flops = 0;  ///< 2 m n k of its products
    std::string shape = {};   ///< as kbench writes it, where the kind has such a shape
    std::optional<Direction> direction = {};  ///< dgrad or wgrad where the sizes tell
    bool counts_all_pairs = false;            ///< attention of which nothing tells whether it is causal
};

/// The op's kind and cost; `element_bytes` is the size of an element, 0 where it is unknown: bytes are then 0. Costs
/// are those of sizes alone. An op has none where they depend on what is no tensor, such as a stride or the number of
/// outputs. Elements of indices have 8 bytes, as a framework's have. What is read of a broadcast operand counts once.
OpWork op_work(const OpCall& call, double element_bytes);

/// kbench's kind for an op or a node of the backward; else its name without namespaces.
std::string op_kind_of(std::string_view name);

}  // namespace kbench
