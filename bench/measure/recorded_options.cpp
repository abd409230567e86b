// See recorded_options.h.
#include "bench/measure/recorded_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace kbench {
namespace {

namespace fs = std::filesystem;

std::string model_text(const Gpt2Config& c) {
    return fmt::format(
        "{}: n_embd {}, n_layer {}, n_head {}, n_ctx {}, vocab_size {}, n_inner {}, layer_norm_epsilon {}, "
        "scale_attn_weights {}, scale_attn_by_inverse_layer_idx {}, reorder_and_upcast_attn {}, initializer_range {}, "
        "tie_word_embeddings {}",
        c.name, c.n_embd, c.n_layer, c.n_head, c.n_ctx, c.vocab_size, c.n_inner, c.layer_norm_epsilon,
        c.scale_attn_weights, c.scale_attn_by_inverse_layer_idx, c.reorder_and_upcast_attn, c.initializer_range,
        c.tie_word_embeddings);
}

std::string providers_text(const ProviderChoice& choice) {
    std::string text;
    for (const auto& [op, provider] : choice) text += fmt::format("{}{}={}", text.empty() ? "" : ",", op, provider);
    return text.empty() ? "default" : text;
}

std::string weights_text(const std::optional<fs::path>& file) {
    if (!file) return "random";
    std::error_code unreadable;  // whoever loads them says so
    const auto bytes = fs::file_size(*file, unreadable);
    return fmt::format("{}, {} bytes", file->filename().string(), unreadable ? 0 : bytes);
}

/// FNV-1a (Fowler, Noll, Vo), 64 bits: tells files apart, protects from nothing.
std::uint64_t hash_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (auto byte = std::istreambuf_iterator<char>(file); byte != std::istreambuf_iterator<char>(); ++byte)
        hash = (hash ^ static_cast<unsigned char>(*byte)) * 0x100000001b3u;
    return hash;
}

std::string counters_text(const CounterRequest& request) {
    std::vector<std::string> all = request.sets;
    all.insert(all.end(), request.metrics.begin(), request.metrics.end());
    return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ","));
}

}  // namespace

std::map<std::string, std::string> recorded_options(const RunOptions& options, const Device& device) {
    const SamplerOptions& sampler = options.sampler;
    return {{"model", model_text(options.config)},
            {"backend", std::string(name(device.kind()))},
            {"attention", options.attention == AttentionKind::fused ? "fused" : "unfused"},
            {"provider", providers_text(options.providers)},
            {"weights", weights_text(options.weights)},
            {"tokens", options.tokens ? fmt::format("{}, FNV-1a {:016x}", options.tokens->filename().string(),
                                                    hash_of(*options.tokens))
                                      : "random"},
            {"seed", std::to_string(options.seed)},
            {"verify", options.verify ? "yes" : "no"},
            {"counters", counters_text(options.counters)},
            {"time_budget_s", fmt::format("{}", sampler.time_budget_s)},
            {"warm_up_s", fmt::format("{}", sampler.warm_up_s)},
            {"min_time_s", fmt::format("{}", sampler.min_time_s)},
            {"min_samples", fmt::format("{}", sampler.min_samples)},
            {"max_samples", fmt::format("{}", sampler.max_samples)},
            {"target_relative_ci", fmt::format("{}", sampler.target_relative_ci)},
            {"step_runs", fmt::format("{}", options.step_runs)},
            {"activity_runs", fmt::format("{}", options.activity_runs)},
            {"activity_warm_up_s", fmt::format("{}", options.activity_warm_up_s)},
            {"marginal_s", fmt::format("{}", options.marginal_s)},
            {"logits_repeats", fmt::format("{}", options.logits_repeats)}};
}

}  // namespace kbench
