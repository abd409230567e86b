// One run: every point of the sweep planned, verified, timed and recorded as it goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result.h"
#include "bench/backend.h"
#include "bench/fuse.h"
#include "bench/point_run.h"
#include "models/gpt2.h"

namespace kbench {

struct RunOptions : PointOptions {
    Gpt2Config config;
    std::vector<Precision> precisions{Precision::fp32};
    std::vector<std::int64_t> batches{1};
    std::vector<std::int64_t> seqs;  ///< empty: the model's n_ctx
    AttentionKind attention = AttentionKind::fused;
    ProviderChoice providers;
    std::optional<std::filesystem::path> weights, tokens, dump_logits;
    std::filesystem::path out;
    bool retune = false;
    std::filesystem::path cache_directory;
};

/// Runs all points in order: precision, then sequence length, then batch. After each, `result` is written to
/// out/result.json and out/steps.csv. A point that the device cannot do is recorded as skipped, with its reason; a
/// failed verification is recorded, then thrown on as MeasurementError.
void run_points(const RunOptions& options, Backend& backend, Result& result, Progress& progress);

}  // namespace kbench
