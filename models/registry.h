// The models that there are, by family: what each is built from and which axes it has. A family is one file and one row
// in registry.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec.h"

namespace kbench {

/// A kind of model.
struct ModelFamily {
    std::string_view name;  ///< `model_type` in a config.json
    std::string_view what;
    std::vector<ModelSpec> (*built_in)();
    /// Reads a config.json; `path` names it in errors. Throws UsageError.
    ModelSpec (*read)(const std::string& text, const std::string& path);
};
std::span<const ModelFamily> model_families();

/// Every built-in model, family by family, and by size within a family.
const std::vector<ModelSpec>& builtin_models();
bool is_builtin_model(std::string_view name);

/// The built-in model called `name`. Throws UsageError that names the nearest one and lists all.
const ModelSpec& find_model(std::string_view name);

/// The model whose shapes microbenchmarks use where none is named.
const ModelSpec& usual_model();

/// The model that a config.json describes. Its `model_type` names the family, or the first family where it is missing.
/// Throws UsageError.
ModelSpec read_model(const std::string& text, const std::string& path);

}  // namespace kbench
