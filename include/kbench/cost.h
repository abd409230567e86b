// What an op or a step must do at the least, as numbers.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace kbench {

/// What a tensor is for; memory and bytes are accounted by role.
enum class Role { tokens, weights, activations, scores, logits, gradients, optimizer, workspace };
inline constexpr std::string_view role_names[] = {"tokens", "weights",   "activations", "scores",
                                                  "logits", "gradients", "optimizer",   "workspace"};
inline constexpr std::size_t role_count = std::size(role_names);
constexpr std::string_view name(Role role) { return role_names[static_cast<int>(role)]; }

/// FLOPs: as the ops' work has them; causal attention counts each (i, j <= i) pair once.
/// Bytes: every distinct input element read once, every output element written once, caches of any size.
struct Cost {
    double flops = 0;
    std::array<double, role_count> bytes_read{}, bytes_written{};

    double bytes() const;
    Cost& operator+=(const Cost& other);
};

}  // namespace kbench
