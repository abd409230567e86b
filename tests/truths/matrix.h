// The matrix: what is known compared with what kbench says, as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>

#include "tests/truths/truth.h"

namespace kbench {

/// Columns aligned, a line for each figure, and a last line that sums up; below it the accounts of what is not ok.
std::string matrix_text(std::span<const Judgement> rows);
nlohmann::ordered_json matrix_json(std::span<const Judgement> rows, std::uint64_t seed);

/// For how many truths kbench may say "cannot tell": units can be equally busy on a chip with other widths.
inline constexpr int most_untold = 1;
/// None is WRONG, at most `most_untold` cannot be told, and one at least is ok.
bool passes(std::span<const Judgement> rows);

}  // namespace kbench
