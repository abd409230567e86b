// A model with its configuration, the axes that it is built at, and a value of each: what families make and the
// registry lists.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/axes.h"
#include "models/base/config_keys.h"
#include "models/model.h"

namespace kbench {

/// An axis that a model is built at: a count, such as its batch, or one of a few words.
struct ModelAxis {
    std::string_view name;
    std::int64_t usual = 1;  ///< for a count: the value where none is asked for
    std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::string_view most_is = "the largest count";  ///< what errors call the upper bound
    std::string_view usual_word = {};                ///< empty: that of the axis

    const Axis& row() const { return axis_named(name); }
    bool is_count() const { return row().kind == AxisKind::count; }
    /// Whether shapes depend on it.
    bool changes_shapes() const { return row().of_file.empty(); }
    /// The allowed words, the usual one first.
    std::vector<std::string_view> words() const;
};

/// The value of each axis that was given.
struct ModelPoint {
    std::map<std::string, std::int64_t, std::less<>> counts = {};
    std::map<std::string, std::string, std::less<>> words = {};
    std::int64_t count(std::string_view axis) const { return counts.find(axis)->second; }
    const std::string& word(std::string_view axis) const { return words.find(axis)->second; }
    /// The phase, given or not.
    std::string phase() const;
};

/// Whether a model's axis is one of the point's phase.
inline bool is_of_phase(const ModelPoint& point, const ModelAxis& axis) {
    return axis.row().is_of_phase(point.phase());
}

/// A model with its configuration, ready to be built.
struct ModelSpec {
    std::string name;
    std::vector<ModelAxis> axes = {};
    std::string description = {};  ///< the whole configuration as text, which tells points of different ones apart
    std::vector<ReadKey> configuration = {};  ///< its config.json as it was read; none for a built-in model
    std::vector<std::string> notes = {};      ///< what a user should know about how that was read
    std::function<Model(const ModelPoint& point)> build_at = {};  ///< `point` has every axis, within bounds

    const ModelAxis* axis(std::string_view axis_name) const;  ///< null where it has no axis of that name
    /// Axes that `point` lacks get their usual value. Throws UsageError for an axis that the model does not have, or a
    /// value out of bounds.
    Model build(const ModelPoint& point) const;
};

}  // namespace kbench
