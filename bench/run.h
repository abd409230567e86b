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
#include "bench/sampler.h"
#include "models/gpt2.h"

namespace kbench {

struct RunOptions {
    Gpt2Config config;
    std::vector<Precision> precisions{Precision::fp32};
    std::vector<std::int64_t> batches{1};
    std::vector<std::int64_t> seqs;  ///< empty: the model's n_ctx
    AttentionKind attention = AttentionKind::fused;
    ProviderChoice providers;
    std::uint64_t seed = 1;
    std::optional<std::filesystem::path> weights, tokens, dump_logits;
    std::filesystem::path out;
    SamplerOptions sampler;
    int step_runs = 11;     ///< instrumented runs for per-step times; medians are reported
    int activity_runs = 9;  ///< forwards in which every kernel is recorded; medians are reported
    double activity_warm_up_s = 1;
    double marginal_s = 3;  ///< time for the marginal costs of all op kinds; 0: none
    CounterRequest counters;
    int logits_repeats = 4;  ///< further forwards whose logits must have the bits of the first
    bool verify = true;
    bool retune = false;
    std::filesystem::path cache_directory;
};

/// Where progress goes; one line, rewritten. Quiet unless stderr is a terminal.
class Progress {
  public:
    Progress();
    void show(const std::string& text);
    void clear();

  private:
    bool terminal_;
    std::size_t shown_ = 0;
};

/// Runs all points in order: precision, then sequence length, then batch. After each, `result` is written to
/// out/result.json and out/steps.csv. A point that the device cannot do is recorded as skipped, with its reason; a
/// failed verification is recorded, then thrown on as MeasurementError.
void run_points(const RunOptions& options, Backend& backend, Result& result, Progress& progress);

}  // namespace kbench
