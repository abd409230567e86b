// The text of a range, taken apart: a module of a framework, one of its ops, or a range of the program's own.
//
//     const kbench::Frame frame = kbench::parse_frame("aten::addmm, seq = 12, sizes = [[3840], [1024, 1280]]");
//     frame.kind;      // FrameKind::op
//     frame.sequence;  // 12
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

enum class FrameKind {
    user,        ///< a range of the program's own
    module,      ///< a call of a module
    op,          ///< an op as the framework dispatches it
    backward,    ///< a node of the framework's backward, named after the op of the forward
    evaluation,  ///< what surrounds a node of the backward: it, and sums of gradients
    gradient,    ///< a gradient that is added to those of a parameter
    optimizer,   ///< a call of the optimizer
};

/// Sizes of an op's arguments in order; none for an argument that is no tensor.
using Sizes = std::vector<std::vector<std::int64_t>>;

struct Frame {
    FrameKind kind = FrameKind::user;
    /// A module's place in the model ("h.0.attn", empty for the model itself); the name of an op or of a range; for
    /// `evaluation` the node's.
    std::string name;
    std::string class_name, dtype, line;   ///< a module's; empty where unknown
    std::optional<std::int64_t> sequence;  ///< an op's; of a backward node that of the op in the forward
    Sizes sizes;                           ///< an op's
    std::string parameters;                ///< the sizes as they are written; empty where there are none
};

/// Never refuses: what it does not know is a range of the program's own. Modules are written as
/// kbench:{"layer":..., "class":..., "dtype":..., "line":...}; ops as torch.autograd.profiler.emit_nvtx writes them
/// (PyTorch, torch/csrc/autograd/profiler_legacy.cpp, getNvtxStr).
Frame parse_frame(std::string_view text);

/// Frame::sequence of an op's text alone: most of a million texts are of no more interest.
std::optional<std::int64_t> sequence_in(std::string_view text);

}  // namespace kbench
