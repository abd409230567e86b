// Results joined into one: which may be, and what keeps them apart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// How alike the devices of two results must be: the same kind, or the very same card.
enum class SameDevice { kind, card };

/// What keeps the points of two results from standing in one: the first difference in kbench's version, the libraries,
/// the device or the options, as "option time_budget_s is 10 here and 5 there". Empty when nothing does. `here` and
/// `there` name the results.
std::string difference(const Result& a, const Result& b, SameDevice device, const std::string& here,
                       const std::string& there);

/// Appends those of `more` that `list` does not hold: of warnings each is there once.
void add_once(std::vector<std::string>& list, std::span<const std::string> more);

/// Throws UsageError where the result of one file holds a point twice: nothing tells which of them is meant, and the
/// figures of one run would count as those of several.
void refuse_repeated_points(const ResultFile& file);

/// One result of all points, by repeat, sequence length, batch and precision. A point that occurs several times with
/// the same data is there once; warnings are kept, each once; environment and ceilings are those of the first. What
/// studies planned is joined: a point was left out where none of them measured it. Throws
/// UsageError, one line that names the files, when two results differ as above, the same point has different data, or
/// there is nothing to join.
Result merge_results(const std::vector<ResultFile>& files);

}  // namespace kbench
