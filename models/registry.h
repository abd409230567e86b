// The named models: one row each.
#pragma once

#include <span>
#include <string_view>

#include "models/gpt2.h"

namespace kbench {

/// All built-in configurations, smallest first.
std::span<const Gpt2Config> builtin_models();

/// The configuration called `name`. Throws UsageError that lists the known names and the nearest one.
const Gpt2Config& find_model(std::string_view name);

}  // namespace kbench
