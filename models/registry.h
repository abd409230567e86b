// The models that there are: families by name, each with what it is built from and at. A family is its file and its row
// in registry.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/config_keys.h"
#include "models/model.h"

namespace kbench {

/// What a model is built at: a count, such as its batch, or one of a few words.
struct ModelAxis {
    std::string_view name;
    std::string_view unit = "";
    std::int64_t usual = 1;  ///< of counts, where none is asked for
    std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::string_view most_is = "the largest count";  ///< what the bound is called
    std::vector<std::string_view> words = {};        ///< instead of a count; the first is the usual one

    bool is_count() const { return words.empty(); }
};

/// A value on each of some axes.
struct ModelPoint {
    std::map<std::string, std::int64_t, std::less<>> counts = {};
    std::map<std::string, std::string, std::less<>> words = {};
    std::int64_t count(std::string_view axis) const { return counts.find(axis)->second; }
    const std::string& word(std::string_view axis) const { return words.find(axis)->second; }
};

/// A model of some configuration, ready to be built.
struct ModelSpec {
    std::string name;
    std::vector<ModelAxis> axes = {};
    std::string description = {};  ///< all that its configuration says, for results: points of other ones are others
    std::vector<ReadKey> configuration = {};  ///< as its config.json was read; none of a built-in model
    std::vector<std::string> notes = {};      ///< what a user should know of how that was read
    std::function<Model(const ModelPoint& point)> build_at = {};  ///< `point` has every axis, within bounds

    const ModelAxis* axis(std::string_view axis_name) const;  ///< null where it has none of that name
    /// Axes that `point` leaves out get their usual value. Throws UsageError for an axis that the model has not, and a
    /// value out of bounds.
    Model build(const ModelPoint& point) const;
};

/// A kind of model.
struct ModelFamily {
    std::string_view name;  ///< `model_type` in a config.json
    std::string_view what;
    std::vector<ModelSpec> (*built_in)();
    /// Reads a config.json; `path` names it in errors. Throws UsageError.
    ModelSpec (*read)(const std::string& text, const std::string& path);
};
std::span<const ModelFamily> model_families();

/// Every built-in model, family by family, and by size within one.
const std::vector<ModelSpec>& builtin_models();

/// The built-in model called `name`. Throws UsageError that names the nearest one and lists all.
const ModelSpec& find_model(std::string_view name);

/// The one whose shapes microbenchmarks take where no model is named.
const ModelSpec& usual_model();

/// The model that a config.json describes; `model_type` says of which family, the first where it is missing. Throws
/// UsageError.
ModelSpec read_model(const std::string& text, const std::string& path);

}  // namespace kbench
