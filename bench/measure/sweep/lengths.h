// Points whose sequences are of several lengths: where these come from, and what of the plan's work they need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "bench/measure/sweep/run_options.h"
#include "bench/plan/plan.h"
#include "kbench/result.h"

namespace kbench {

/// Whether one of the files that these functions write is called `name`.
bool is_lengths_name(std::string_view name);

/// The file with the lengths of `point`, whose batch is known: that of options.inputs, or one that this function writes
/// to options.out, so that other runs can use the drawn lengths. Empty where all are full. Throws UsageError,
/// also where a file of that name holds other lengths; that file stays.
std::filesystem::path lengths_file(const RunOptions& options, const Point& point);

/// Writes a file to options.out for the plan's input target_lengths, as an utterance of few frames has a text of few
/// labels. The target length of sequence i is the model's length times lengths[i] / `longest`, rounded. Empty
/// where the plan has no such input, or options.inputs has its file. Throws UsageError.
std::filesystem::path target_lengths_file(const RunOptions& options, const Plan& plan, std::int64_t longest,
                                          std::span<const std::int32_t> lengths);

/// Changes the FLOPs of `point`'s steps from those at full lengths, as plan_point left them, to the useful ones at
/// `lengths`. The rest becomes padding. `useful`: useful_flops of the plan's model. Notes in the point which lengths
/// these are. Throws UsageError where all are 0. Bytes and FLOPs of matrix products stay those of what runs.
void account_lengths(const Plan& plan, const std::vector<double>& useful, std::span<const std::int32_t> lengths,
                     Point& point);

}  // namespace kbench
