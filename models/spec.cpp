// Builds models within the bounds of their axes.
#include "models/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/base/sizes.h"

namespace kbench {

std::vector<std::string_view> ModelAxis::words() const {
    const Axis& axis = row();
    const std::span<const std::string_view> offered = axis.offered_words();
    std::vector<std::string_view> list(offered.begin(), offered.end());
    if (!axis.of_file.empty()) list.push_back(axis.of_file);
    const std::string first = usual_word.empty() && axis.usual ? text_of(*axis.usual) : std::string(usual_word);
    std::ranges::stable_partition(list, [&](std::string_view word) { return word == first; });
    return list;
}

std::string ModelPoint::phase() const {
    const auto given = words.find(phase_axis().name);
    return given == words.end() ? text_of(*phase_axis().usual) : given->second;
}

const ModelAxis* ModelSpec::axis(std::string_view axis_name) const {
    const auto found = std::ranges::find(axes, axis_name, &ModelAxis::name);
    return found == axes.end() ? nullptr : &*found;
}

Model ModelSpec::build(const ModelPoint& point) const {
    const auto refuse_unknown = [&](const std::string& given) {
        if (axis(given) == nullptr)
            throw UsageError(fmt::format("{} has no {}; it has {}", name, given,
                                         fmt::join(std::views::transform(axes, &ModelAxis::name), ", ")));
    };
    for (const auto& [given, value] : point.counts) refuse_unknown(given);
    for (const auto& [given, value] : point.words) refuse_unknown(given);
    ModelPoint whole = point;
    for (const ModelAxis& axis : axes) {
        if (axis.is_count()) {
            const std::int64_t value = whole.counts.try_emplace(std::string(axis.name), axis.usual).first->second;
            if (value < axis.row().least)
                throw UsageError(fmt::format("{} {} must be at least {}", axis.name, value, axis.row().least));
            if (value > axis.most)
                throw UsageError(
                    fmt::format("{} {} is over {}'s {} {}", axis.name, value, name, axis.most_is, axis.most));
        } else {
            const std::vector<std::string_view> words = axis.words();
            const std::string& word = whole.words.try_emplace(std::string(axis.name), words.front()).first->second;
            if (std::ranges::find(words, word) == words.end())
                throw UsageError(fmt::format("{} '{}' of {}: {}", axis.name, word, name, nearest_name(word, words)));
        }
    }
    Model model = build_at(whole);
    double elements = 0;
    for (const Tensor& tensor : model.tensors) elements += product_of(tensor.shape);
    require_countable(elements, fmt::format("{} at batch {}", name, whole.count("batch")));
    return model;
}

}  // namespace kbench
