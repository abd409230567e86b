// The matrix: what was planted beside what kbench says of it, as a table and as JSON.
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

/// So many truths may be beyond telling: two units can be equally busy where a chip has other widths.
inline constexpr int most_untold = 2;
/// None is WRONG, at most `most_untold` cannot be told, and one at least is ok.
bool passes(std::span<const Judgement> rows);

}  // namespace kbench
