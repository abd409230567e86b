// The table of model families, and the search in it.
#include "models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "kbench/error.h"
#include "models/base/config_keys.h"
#include "models/base/nearest.h"
#include "models/deepspeech2.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mlp.h"

namespace kbench {
namespace {

/// Families that are read from a config.json alone.
std::vector<ModelSpec> no_models() { return {}; }

constexpr ModelFamily families[] = {
    {"gpt2", "GPT-2 (Radford et al., 2019): a decoder-only transformer", gpt2_models, read_gpt2},
    {"llama", "Llama (Touvron et al., 2023): a decoder with rotary embeddings and gated MLPs", llama_models,
     read_llama},
    {"mistral", "Mistral (Jiang et al., 2023): a Llama whose tokens see a sliding window", mistral_models, read_llama},
    {"qwen2", "Qwen2 (Yang et al., 2024): a Llama with biases of q, k and v", no_models, read_llama},
    {"qwen3", "Qwen3 (Yang et al., 2025): a Llama that normalises the heads of q and k", qwen3_models, read_llama},
    {"mlp", "a multi-layer perceptron: dense layers with bias and GELU", mlp_models, read_mlp},
    {"deepspeech2", "Deep Speech 2 (Amodei et al., 2016): convolutions and recurrent layers for speech",
     deepspeech2_models, read_deepspeech2},
};

}  // namespace

std::span<const ModelFamily> model_families() { return families; }

const std::vector<ModelSpec>& builtin_models() {
    static const std::vector<ModelSpec> models = [] {
        std::vector<ModelSpec> all;
        for (const ModelFamily& family : families)
            for (ModelSpec& model : family.built_in()) all.push_back(std::move(model));
        return all;
    }();
    return models;
}

bool is_builtin_model(std::string_view name) {
    return std::ranges::count(builtin_models(), name, &ModelSpec::name) > 0;
}

const ModelSpec& find_model(std::string_view name) {
    const std::vector<ModelSpec>& models = builtin_models();
    if (const auto found = std::ranges::find(models, name, &ModelSpec::name); found != models.end()) return *found;
    throw UsageError(fmt::format("unknown model '{}'; {}", name, nearest_name(name, models, &ModelSpec::name)));
}

const ModelSpec& usual_model() { return find_model("gpt2-large"); }

ModelSpec read_model(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path);
    const auto has = [&](const char* key) { return keys.has(key); };
    // Only these names distinguish a GPT-2 from its many relatives.
    if (constexpr const char* of_gpt2[] = {"n_embd", "n_layer", "n_head"};
        !has("model_type") && std::ranges::none_of(of_gpt2, has))
        keys.fail(fmt::format("key 'model_type' is missing, and so are {} of a gpt2; it must be one of {}",
                              fmt::join(of_gpt2, ", "),
                              fmt::join(std::views::transform(families, &ModelFamily::name), ", ")));
    const std::string type = keys.text_or("model_type", std::string(families[0].name));
    const auto* family = std::ranges::find(families, type, &ModelFamily::name);
    if (family == std::end(families))
        keys.fail(fmt::format("model_type '{}' is not supported; {}", keys.shown(type),
                              nearest_name(type, families, &ModelFamily::name)));
    return family->read(text, path);
}

}  // namespace kbench
