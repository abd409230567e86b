// What an op must do at the least: FLOPs, and compulsory bytes by role. Pure arithmetic on shapes.
#pragma once

#include <array>
#include <cstdint>

#include "models/model.h"

namespace kbench {

/// FLOPs: as the ops' work has them; causal attention counts each (i, j <= i) pair once.
/// Bytes: every distinct input element read once, every output element written once, caches of any size.
struct Cost {
    double flops = 0;
    std::array<double, role_count> bytes_read{}, bytes_written{};

    double bytes() const;
    Cost& operator+=(const Cost& other);
};

/// Bytes that one tensor takes in `precision` without padding.
double tensor_bytes(const Tensor& tensor, Precision precision);

/// Cost of a step that computes `ops` (indices into model.ops) at once: tensors that live only between them cost no
/// bytes, a tensor read by several of them counts once.
Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision);

}  // namespace kbench
