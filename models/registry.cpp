// The table of named models, and the search in it.
#include "models/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/base/error.h"
#include "models/base/nearest.h"

namespace kbench {

std::span<const Gpt2Config> builtin_models() {
    // Radford et al., 2019, table 2, with the head counts of the published checkpoints.
    static const std::array models{
        Gpt2Config{.name = "gpt2", .n_embd = 768, .n_layer = 12, .n_head = 12},
        Gpt2Config{.name = "gpt2-medium", .n_embd = 1024, .n_layer = 24, .n_head = 16},
        // The options that CodeParrot was trained with: scores divided by the layer's number and kept in fp32.
        Gpt2Config{.name = "gpt2-large-codeparrot",
                   .n_embd = 1280,
                   .n_layer = 36,
                   .n_head = 20,
                   .vocab_size = 32768,
                   .scale_attn_by_inverse_layer_idx = true,
                   .reorder_and_upcast_attn = true},
        Gpt2Config{.name = "gpt2-large", .n_embd = 1280, .n_layer = 36, .n_head = 20},
        Gpt2Config{.name = "gpt2-xl", .n_embd = 1600, .n_layer = 48, .n_head = 25},
    };
    return models;
}

const Gpt2Config& find_model(std::string_view name) {
    const auto models = builtin_models();
    const auto far = [name](const Gpt2Config& model) { return edit_distance(name, model.name); };
    const Gpt2Config& nearest = *std::ranges::min_element(models, {}, far);
    if (nearest.name == name) return nearest;
    std::string names;
    for (const Gpt2Config& model : models) names += (names.empty() ? "" : ", ") + model.name;
    throw UsageError(fmt::format("unknown model '{}'; did you mean '{}'? ({})", name, nearest.name, names));
}

}  // namespace kbench
