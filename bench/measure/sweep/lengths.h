// Points whose sequences are of several lengths: where these come from, and what of the plan's work they need.
#pragma once

#include <string_view>

#include "bench/measure/sweep/point_plans.h"
#include "bench/measure/sweep/run_options.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/plan.h"
#include "kbench/result.h"

namespace kbench {

/// Whether one of the files that these functions write is called `name`.
bool is_lengths_name(std::string_view name);

/// The files of the model's inputs for `point`, whose batch is known and of which `plan` is: options.inputs and, where
/// lengths are drawn, files of them and of target lengths. An utterance of few frames has a text of few labels: the
/// model's length times lengths[i] over the longest, rounded. Both are written to options.out, for other runs.
/// Where lengths are not all full, the FLOPs of the point's steps become the useful ones, and the rest padding; the
/// point says which lengths these are. Bytes and FLOPs of matrix products stay those of what runs. Throws UsageError
/// where all lengths are 0, or where a file of that name holds other lengths; that file stays.
FilesByName inputs_with_lengths(const RunOptions& options, const PointPlans& plans, const Plan& plan, Point& point);

}  // namespace kbench
