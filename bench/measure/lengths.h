// Points whose sequences are of several lengths: where these come from, and what of the plan's work they need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "bench/measure/run.h"
#include "bench/plan/plan.h"
#include "kbench/result.h"

namespace kbench {

/// Whether one of the files that these functions write is called `name`.
bool is_lengths_name(std::string_view name);

/// The file with the lengths of `point`, one of this run at a batch that is known: options.inputs', or one that this
/// writes to options.out, so that others can be run at what was drawn; empty where all are full. Throws UsageError;
/// also where another file of that name stands there, which stays.
std::filesystem::path lengths_file(const RunOptions& options, const Point& point);

/// A file that this writes to options.out for the plan's input target_lengths, as an utterance of few frames has a text
/// of few labels: to sequences of `lengths` their shares of what the model lists for those that have `longest`. Empty
/// where the plan has no such input, or options.inputs has its file. Throws UsageError.
std::filesystem::path target_lengths_file(const RunOptions& options, const Plan& plan, std::int64_t longest,
                                          std::span<const std::int32_t> lengths);

/// Makes the FLOPs of `point`'s steps, which plan_point described as those of full lengths, the useful ones at
/// `lengths`; the rest becomes padding. `useful`: useful_flops of the plan's model. Notes in the point which lengths
/// these are. Throws UsageError where all are 0. Bytes and FLOPs of matrix products stay those of what runs.
void account_lengths(const Plan& plan, const std::vector<double>& useful, std::span<const std::int32_t> lengths,
                     Point& point);

}  // namespace kbench
