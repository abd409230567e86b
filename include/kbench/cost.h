// What an op, a step or a model must do, as numbers.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace kbench {

/// What a tensor is for; memory and bytes are accounted by role.
/// Saved activations are those that a forward makes and its backward reads.
enum class Role { tokens, weights, activations, saved_activations, scores, logits, gradients, optimizer, workspace };
inline constexpr std::string_view role_names[] = {"tokens", "weights",   "activations", "saved_activations", "scores",
                                                  "logits", "gradients", "optimizer",   "workspace"};
inline constexpr std::size_t role_count = std::size(role_names);
constexpr std::string_view name(Role role) { return role_names[static_cast<int>(role)]; }
/// The same in sentences and tables.
constexpr std::string_view title(Role role) {
    return role == Role::saved_activations ? "saved activations" : name(role);
}

/// FLOPs: as the ops' work has them; causal attention counts each (i, j <= i) pair once, whoever computes it.
/// Bytes: every distinct input element read once, every output element written once. Summed over a model's steps they
/// are its *streaming bytes*: each step reads its operands from memory and writes its results there. Caches may keep
/// some of them between steps, so a model can move fewer. Its *least bytes* are another figure (models/cost.h).
struct Cost {
    double flops = 0;
    std::array<double, role_count> bytes_read{}, bytes_written{};

    double bytes() const;
    Cost& operator+=(const Cost& other);
};

}  // namespace kbench
