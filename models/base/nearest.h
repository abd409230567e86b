// Names similar to a mistyped one, for error messages. It knows no table of names, so every table may use it.
#pragma once

#include <cstddef>
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

}  // namespace kbench
