// The options of `kbench study`, a table: its own, and those of `kbench run` that mean the same for each of its points.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"
#include "bench/command/options.h"
#include "bench/measure/study/plan.h"

namespace kbench {

struct StudyRequest : RunRequest {
    std::optional<std::int64_t> batch;
    std::optional<Precision> precision;
    std::vector<Precision> precisions{all_precisions.begin(), all_precisions.end()};
    std::vector<std::int64_t> batches;  ///< none: by the memory
    std::optional<double> budget_s = 600;
    std::filesystem::path redraw;  ///< an earlier study's; then nothing is measured
};
std::span<const OptionOf<StudyRequest>> study_options();

/// The table for docs/study.md.
std::string study_options_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedStudy {
    StudyRequest request;
    std::string help;
};
ParsedStudy parse_study(const std::vector<std::string>& arguments);

/// What is kept fixed where nobody said: batch 8 on a GPU and 1 on a CPU, bf16 on a GPU and fp32 on a CPU; on a CPU
/// sequences of at most 128 tokens and utterances of at most 200 frames.
StudyBase study_base(StudyRequest& request, bool is_gpu);

}  // namespace kbench
