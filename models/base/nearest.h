// Names similar to a mistyped one, for error messages. It knows no table of names, so every table may use it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

/// Number of edits (insert, delete, replace a character) that turn `a` into `b`; upper and lower case count as equal.
/// V. Levenshtein, Soviet Physics Doklady 10 (1966).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// At most `count` of `names`, nearest to `name` first: those that begin with it, then those that contain it, each and
/// the rest by edit distance. "a100" finds a100-sxm4-40gb before l4, which is fewer edits away. Upper and lower case
/// count as equal; equally near ones keep their order.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names,
                                       std::size_t count = 3);

/// What a refusal of `name`, which is none of `names`, says of them: "did you mean micro? One of run, micro, table".
/// Up to three names that hold it are meant, else the one that is a few edits away. Where none is near, only "must be
/// one of run, micro, table". Of many names the list is left out; "nearest: " and three stand there where none is near.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

/// The same for the names of what a range holds.
template <class Range, class Name = std::identity>
std::string nearest_name(std::string_view name, const Range& range, Name name_of = {}) {
    std::vector<std::string> names;
    for (const auto& one : range) names.emplace_back(std::invoke(name_of, one));
    return nearest_name(name, std::span<const std::string>(names));
}

}  // namespace kbench
