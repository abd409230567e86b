// What an op, a step or a model must do at the least, as numbers: FLOPs, and bytes by role.
//
//     kbench::Cost total;
//     for (const kbench::StepResult& step : point.steps) total += step.cost;  // result.h
//     total.bytes_read[static_cast<std::size_t>(kbench::Role::weights)];      // bytes of all weights, read once each
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace kbench {

/// What a tensor is for; memory and bytes are accounted by role.
/// Saved activations are those that a forward makes and its backward reads. The cache holds keys and values of the
/// tokens before, which each new token reads and adds to.
enum class Role {
    tokens,
    weights,
    activations,
    saved_activations,
    scores,
    logits,
    cache,
    gradients,
    optimizer,
    workspace
};
inline constexpr std::string_view role_names[] = {"tokens", "weights", "activations", "saved_activations", "scores",
                                                  "logits", "cache",   "gradients",   "optimizer",         "workspace"};
inline constexpr std::size_t role_count = std::size(role_names);
constexpr std::string_view name(Role role) { return role_names[static_cast<int>(role)]; }
/// The role's name in sentences and tables.
constexpr std::string_view title(Role role) {
    return role == Role::saved_activations ? "saved activations" : name(role);
}

/// FLOPs count useful work; causal attention counts each (i, j <= i) pair once, whichever provider computes it.
/// Bytes count every distinct input element read once and every output element written once. Summed over a model's
/// steps they are its *unfused traffic*, as if each step read from and wrote to DRAM. Caches keep some operands
/// between steps, so a model can move fewer. Its *compulsory traffic* are another figure (models/cost.h).
struct Cost {
    double flops = 0;
    std::array<double, role_count> bytes_read{}, bytes_written{};

    double bytes() const;
    Cost& operator+=(const Cost& other);
};

}  // namespace kbench
