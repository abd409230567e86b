// A model: tensors, and ops that read and write them, in execution order, with the layer names of the checkpoint.
// Pure description: no device, no data, no choice of provider.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/op.h"

namespace kbench {

/// What a tensor is for; memory and bytes are accounted by role.
enum class Role { tokens, weights, activations, scores, logits, gradients, optimizer, workspace };
inline constexpr std::string_view role_names[] = {"tokens", "weights",   "activations", "scores",
                                                  "logits", "gradients", "optimizer",   "workspace"};
inline constexpr std::size_t role_count = std::size(role_names);
constexpr std::string_view name(Role role) { return role_names[static_cast<int>(role)]; }

using TensorId = std::size_t;

/// How a seeded random weight is drawn (GPT-2's own initialisation, Radford et al., 2019, section 2.3).
struct Initialisation {
    enum class Kind { normal, ones, zeros } kind = Kind::zeros;
    double standard_deviation = 0.0;
};

/// A matrix [rows, columns], row-major; a vector has one row.
/// Weights carry the name they have in a Hugging Face checkpoint, less the prefix "transformer.".
struct Tensor {
    std::string name;
    Role role;
    std::int64_t rows, columns;
    bool is_vector = false;    ///< shape in the checkpoint is [columns]
    bool always_fp32 = false;  ///< stored in fp32 whatever the precision (upcast scores)
    Initialisation init = {};  ///< weights and resident tensors only
    /// In memory of its own for the whole run, filled before it as weights are, whatever the role.
    bool resident = false;
};

/// One op in a layer. `inputs` and `outputs` stand in the order that op.h gives for the kind.
struct OpNode {
    Op op;
    std::string layer;
    std::vector<TensorId> inputs, outputs;
    Direction direction = Direction::fwd;
};

struct Model {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<OpNode> ops;
    TensorId tokens = 0, logits = 0;
    std::int64_t batch = 0, seq = 0, vocab = 0;

    /// Elements of all weights; a tied weight counts once.
    std::int64_t parameter_count() const;
};

}  // namespace kbench
