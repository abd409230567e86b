// Batches with sequences of several lengths: the axis that chooses the lengths, how they are drawn, and how much of the
// padded work they need.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/spec.h"

namespace kbench {

/// The axis that says where lengths come from; the model's input that holds them has the same name. Lengths are all
/// equal to the axis `frames`, drawn as librispeech_like does, or read from a file. Shorter sequences are padded.
inline constexpr std::string_view lengths_name = "lengths", frames_name = "frames";
inline constexpr std::string_view drawn_lengths = "librispeech-like";

/// Lengths of `batch` utterances in frames, longest first as loaders order a packed batch; the first is `longest`.
/// They resemble LibriSpeech's train-clean-100: 100.6 hours (Panayotov et al., ICASSP 2015, table 1) in 28,539
/// utterances are 12.7 s each on average, 24.5 s at most. 78 % are drawn normally around 14.2 s with a deviation of
/// 1.5 s, 22 % uniformly from 1.5 to 13 s. This has the right mean; most utterances have 10 to 16 s and one in fifteen
/// less than 5 s. It is not a fit to the corpus. All are then scaled by one factor. There is no bucketing: a loader
/// that sorts the corpus by length first pads less. A seed gives the same lengths on every machine.
std::vector<std::int32_t> librispeech_like(std::uint64_t seed, std::int64_t batch, std::int64_t longest);

/// For each op of spec.build(point), the FLOPs that results within the sequences need; their `lengths` are in frames,
/// one per sequence. It is the work of each sequence alone, unpadded, at batch 1; what a batch does once for all, such
/// as the root of a channel's variance, counts once. With full lengths these are the FLOPs of the op's own work.
std::vector<double> useful_flops(const ModelSpec& spec, const ModelPoint& point, std::span<const std::int32_t> lengths);

}  // namespace kbench
