// The options of `kbench train`, one table: parsing, help text and the table in docs/training.md all come from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/device_options.h"
#include "bench/command/option_table.h"
#include "bench/measure/training/train.h"
#include "kbench/precision.h"
#include "models/registry.h"

namespace kbench {

struct TrainRequest {
    std::string model, config_file;
    ModelSpec spec;  ///< from --model or --config
    DeviceRequest device;
    Precision precision = Precision::fp32;
    std::int64_t steps = 100, batch = 8, log_every = 10;
    std::optional<std::int64_t> seq, frames;  ///< else the model's usual ones
    std::string data = "synthetic";
    bool deterministic = false;
    bool master = true;  ///< where the precision stores 16 bits
    bool recompute = false;
    std::optional<double> loss_scale;
    std::uint64_t seed = 1;
    std::optional<std::filesystem::path> weights, save;
    TrainOptions train;
};
std::span<const OptionOf<TrainRequest>> train_options();

/// The options for docs/training.md.
std::string train_options_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedTrain {
    TrainRequest request;
    std::string help;
};
ParsedTrain parse_train(const std::vector<std::string>& arguments);

}  // namespace kbench
