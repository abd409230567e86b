// Which layer and op of a framework launched each kernel, from the ranges around the launch.
//
//     const std::vector<kbench::ActivityLayer> layers = kbench::layers_of(names, begin, end);
//     layers[0].layer;  // "h.0.attn.c_attn"
//     layers[0].op;     // "aten::addmm"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/program/frame_text.h"
#include "analysis/program/program_file.h"
#include "kbench/op.h"

namespace kbench {

/// One op in whose range the launch lies.
struct OpFrame {
    std::int64_t range = 0;
    Frame frame;
};

struct ActivityLayer {
    /// The module's place in the model; its class for the model itself. "gradients" and "optimizer" for what adds up
    /// gradients and updates weights. Without modules the program's own ranges, joined by "/", else the outermost op.
    /// Empty without any range.
    std::string layer;
    std::string class_name, dtype, line;  ///< the module's; for the backward those of its forward
    std::string node;                     ///< the node of the backward, such as "AddmmBackward0"; empty in the forward
    std::int64_t call = 0;                ///< range of the outermost op, node or optimizer; 0: none
    std::string op;                       ///< what `call` is, as the framework names it
    std::vector<OpFrame> ops;             ///< below the innermost module or node, outermost first
    std::optional<std::int64_t> sequence, forward_sequence;
    std::optional<OpFrame> forward;  ///< the op whose backward this is
    std::string forward_op;          ///< the outermost op around it, as `op` of the forward
    std::int64_t thread = 0;         ///< that launched it; 0: unknown
    Direction direction = Direction::fwd;

    const std::string& parameters() const;  ///< sizes of the outermost op that has some
    const std::string& sub() const;         ///< the innermost op; empty where it is the only one
};

/// The layers of activities [begin, end) of the file. A node of the backward has the layer of the op with its sequence
/// number: of several ops with that number the one it is named after, else the last.
std::vector<ActivityLayer> layers_of(const ProgramFile& file, std::size_t begin, std::size_t end);

/// "addmm" of "aten::addmm"; template arguments keep theirs.
std::string unqualified(std::string_view name);

/// The name without its namespaces, underscores around it and "Backward0" at its end, in small letters: "addmm" for
/// both aten::addmm_ and AddmmBackward0. Underscores within it are left out, too.
std::string plain_op_name(std::string_view name);

}  // namespace kbench
