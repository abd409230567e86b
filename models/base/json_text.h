// JSON of whoever: looked over before a parser reads it, so that neither its depth nor the number of its members can
// exhaust a stack or a day.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kbench {

/// No file of kbench's or of a model is deeper.
inline constexpr std::size_t deepest_json = 64;
/// Of one object whose members stand in their order, where each new one is looked for among all before it: 19,000 take
/// 0.6 s.
inline constexpr std::size_t most_ordered_members = 20'000;

/// Throws UsageError, one line that begins with `path`, where brackets are nested deeper than deepest_json, or an
/// object has more than `most_members`. What is no JSON is left to the parser.
void check_json_text(std::string_view text, const std::string& path, std::size_t most_members = 10'000'000);

}  // namespace kbench
