// Deep Speech 2 (Amodei et al., ICML 2016) as layers of ops, in evaluation mode.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ops/recurrent.h"
#include "models/spec.h"

namespace kbench {

/// What a config.json may set, under the names of deepspeech.pytorch's configuration.
struct DeepSpeech2Config {
    std::string name;
    Cell cell = Cell::lstm;
    std::int64_t hidden_size = 1024, hidden_layers = 5;
    std::int64_t conv_channels = 32;
    std::int64_t labels = 29;
    /// Sample rate of the audio. The spectrogram has sample_rate * window_size / 2 + 1 rows.
    std::int64_t sample_rate = 16000;
    double window_size = 0.02;  ///< length of the spectrogram's window in seconds

    std::int64_t frequencies() const;
};

/// The registry's rows. Axes: frames of 10 ms (as many as the longest utterance has) and batch.
std::vector<ModelSpec> deepspeech2_models();
ModelSpec read_deepspeech2(const std::string& text, const std::string& path);
/// What each key of a config.json means to this family: deepspeech2_keys.cpp.
const FamilyKeys& deepspeech2_keys();

/// The forward pass under the names of deepspeech.pytorch's checkpoints (SeanNaren/deepspeech.pytorch, model.py).
/// Inputs: `spectrogram` [batch, 1, frequencies, frames] and `lengths` [batch, 1], frames of each utterance. Output:
/// `logits` [time steps of the recurrent layers, batch, labels]; a time step covers two input frames.
Model make_deepspeech2(const DeepSpeech2Config& config, std::int64_t batch, std::int64_t frames);

}  // namespace kbench
