// A multi-layer perceptron: dense layers with GELU between them. The smallest model worth measuring, and the one to
// read first when adding another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec.h"

namespace kbench {

/// The one key of its config.json besides `model_type`.
struct MlpConfig {
    std::string name;
    std::vector<std::int64_t> sizes;  ///< width of the input, of each hidden layer and of the output
};

/// The registry's rows. One axis: batch.
std::vector<ModelSpec> mlp_models();
ModelSpec read_mlp(const std::string& text, const std::string& path);
/// What each key of a config.json means to this family: mlp_keys.cpp.
const FamilyKeys& mlp_keys();

/// y = GELU(x · w^T + bias) layer by layer, the last one without GELU. Input `inputs` [batch, sizes.front()], output
/// `outputs` [batch, sizes.back()]. Weights are [out, in] and have the names that PyTorch gives an nn.ModuleList of
/// nn.Linear: layers.0.weight, layers.0.bias.
Model make_mlp(const MlpConfig& config, std::int64_t batch);

}  // namespace kbench
