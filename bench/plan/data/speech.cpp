// Draws texts and their spectrograms from a seed.
#include "bench/plan/data/speech.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "bench/plan/data/random.h"

namespace kbench {
namespace {

/// Whole numbers of one utterance.
class Draws {
  public:
    Draws(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}
    /// In [first, last].
    std::int64_t between(std::int64_t first, std::int64_t last) {
        // The upper half of the counter is no hash of a stream's name by any likelihood that matters.
        const auto words = philox4x32_10(
            {drawn_++, static_cast<std::uint32_t>(index_), static_cast<std::uint32_t>(index_ >> 32), 0x53706368u},
            {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
        return first + static_cast<std::int64_t>(words[0] % static_cast<std::uint64_t>(last - first + 1));
    }

  private:
    std::uint64_t seed_, index_;
    std::uint32_t drawn_ = 0;
};

constexpr std::int64_t shortest_label = 4, longest_label = 6, shortest_silence = 2, longest_silence = 3;

}  // namespace

SpeechSource::SpeechSource(std::uint64_t seed, std::int64_t frequencies, std::int64_t frames, std::int64_t labels,
                           std::int64_t most)
    : seed_(seed),
      frequencies_(frequencies),
      frames_(frames),
      labels_(labels),
      most_(most),
      spectra_(static_cast<std::size_t>(labels * frequencies)) {
    fill_normal(seed, "spectra of labels", 1, DataType::fp32, spectra_.data(), labels * frequencies);
    std::fill_n(spectra_.begin(), frequencies, 0.0f);
}

SpeechSource::Utterance SpeechSource::utterance(std::uint64_t index, std::span<float> spectrogram) const {
    fill_normal(seed_, fmt::format("noise of utterance {}", index), noise, DataType::fp32, spectrogram.data(),
                frequencies_ * frames_);
    Draws draws(seed_, index);
    Utterance drawn;
    drawn.frames = draws.between((6 * frames_ + 9) / 10, frames_);
    std::vector<std::int32_t> label_of(static_cast<std::size_t>(drawn.frames), 0);
    std::int64_t at = draws.between(shortest_silence, longest_silence);
    while (static_cast<std::int64_t>(drawn.text.size()) < most_) {
        const auto label = static_cast<std::int32_t>(draws.between(1, labels_ - 1));
        const std::int64_t lasts = draws.between(shortest_label, longest_label);
        if (at + lasts > drawn.frames) break;
        std::fill_n(label_of.begin() + at, lasts, label);
        drawn.text.push_back(label);
        at += lasts + draws.between(shortest_silence, longest_silence);
    }
    for (std::int64_t frequency = 0; frequency < frequencies_; ++frequency) {
        float* const row = spectrogram.data() + frequency * frames_;
        for (std::int64_t frame = 0; frame < drawn.frames; ++frame)
            row[frame] += spectra_[static_cast<std::size_t>(label_of[static_cast<std::size_t>(frame)] * frequencies_ +
                                                            frequency)];
        std::fill(row + drawn.frames, row + frames_, 0.0f);
    }
    return drawn;
}

std::vector<std::int32_t> greedy_labels(const float* logits, std::int64_t steps, std::int64_t labels,
                                        std::int64_t stride) {
    std::vector<std::int32_t> text;
    std::int32_t before = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
        const float* const row = logits + step * stride;
        const auto label = static_cast<std::int32_t>(std::max_element(row, row + labels) - row);
        if (label != 0 && label != before) text.push_back(label);
        before = label;
    }
    return text;
}

std::int64_t edit_distance(std::span<const std::int32_t> from, std::span<const std::int32_t> to) {
    std::vector<std::int64_t> distance(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j) distance[j] = static_cast<std::int64_t>(j);
    for (std::size_t i = 1; i <= from.size(); ++i) {
        std::int64_t diagonal = distance[0];
        distance[0] = static_cast<std::int64_t>(i);
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::int64_t substituted = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
            diagonal = distance[j];
            distance[j] = std::min({substituted, distance[j] + 1, distance[j - 1] + 1});
        }
    }
    return distance.back();
}

std::string text_of(std::span<const std::int32_t> labels, std::int64_t of_labels) {
    constexpr std::string_view letters = "?'ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (of_labels != static_cast<std::int64_t>(letters.size())) return fmt::format("{}", fmt::join(labels, " "));
    std::string text;
    for (const std::int32_t label : labels) text += letters[static_cast<std::size_t>(label)];
    return text;
}

}  // namespace kbench
