// Counters by name, for tests of what was executed.
#pragma once

#include <map>
#include <string>

namespace kbench {

using Counted = std::map<std::string, double>;

inline const Counted no_tensor_ops{
    {"tensor_fp16_ops", 0}, {"tensor_bf16_ops", 0}, {"tensor_tf32_ops", 0}, {"tensor_fp64_ops", 0}};
inline const Counted plain{{"sass_fadd", 1},   {"sass_fmul", 20},  {"sass_ffma", 300},
                           {"sass_dadd", 1e3}, {"sass_dmul", 2e4}, {"sass_dfma", 3e5},
                           {"sass_hadd", 1e6}, {"sass_hmul", 2e7}, {"sass_hfma", 3e8}};

/// `first`, and of `second` what it lacks.
inline Counted both(Counted first, const Counted& second) {
    first.insert(second.begin(), second.end());
    return first;
}

}  // namespace kbench
