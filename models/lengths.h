// Batches whose sequences are of several lengths: what such a model is built at, lengths to run it at, and what of its
// work they need.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/registry.h"

namespace kbench {

/// The axis of where lengths come from, which is also how the model calls the input that holds them: all as long as its
/// axis `frames`, drawn as librispeech_like does, or a file's.
inline constexpr std::string_view lengths_name = "lengths", frames_name = "frames";
inline constexpr std::string_view full_lengths = "full", drawn_lengths = "librispeech-like", lengths_of_file = "file";
/// For models that have it. Shapes do not depend on it: shorter sequences are padded.
inline ModelAxis lengths_axis() {
    return {.name = lengths_name, .words = {full_lengths, drawn_lengths, lengths_of_file}};
}

/// Lengths of `batch` utterances in frames, the longest first as loaders give them to a packed batch; it has `longest`.
/// They resemble those of LibriSpeech's train-clean-100, whose 100.6 hours (Panayotov et al., ICASSP 2015, table 1) in
/// 28,539 utterances are 12.7 s each in the mean, and 24.5 s at the most: 78 % are normal around 14.2 s with a
/// deviation of 1.5 s, 22 % uniform from 1.5 to 13 s. That is a shape with this mean in which most have 10 to 16 s and
/// one in fifteen less than 5 s, not a fit to the corpus. Then all are scaled alike. They are drawn without bucketing:
/// a loader that sorts the corpus by length first pads less. The same of one seed on every machine.
std::vector<std::int32_t> librispeech_like(std::uint64_t seed, std::int64_t batch, std::int64_t longest);

/// Of each op of spec.build(point), the FLOPs that results within the sequences need where these have `lengths` frames,
/// point.count("batch") of them: what each would need alone, unpadded, at batch 1. What a batch does once for all, such
/// as the root of a channel's variance, counts once. With full lengths these are the FLOPs of the op's own work.
std::vector<double> useful_flops(const ModelSpec& spec, const ModelPoint& point, std::span<const std::int32_t> lengths);

}  // namespace kbench
