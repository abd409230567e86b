// Synthetic speech whose text can be read off its spectrogram, so that training can be judged: a model can reach no
// errors at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kbench {

/// Endless utterances. Each label but 0, the blank, has a spectrum of its own: a normal number for each frequency,
/// drawn once a source. An utterance is labels drawn alike, each lasting 4 to 6 frames, with 2 or 3 silent ones
/// between, so that two equal neighbours are told apart; and normal noise of deviation 0.3 everywhere. It lasts from
/// 60 % of `frames` to all of them; zeros follow it. Drawn by Philox: utterance i of one seed is the same on every
/// machine, whatever was drawn before.
class SpeechSource {
  public:
    static constexpr double noise = 0.3;

    /// Utterances have at most `most` labels, each in [1, labels).
    SpeechSource(std::uint64_t seed, std::int64_t frequencies, std::int64_t frames, std::int64_t labels,
                 std::int64_t most);

    struct Utterance {
        std::int64_t frames = 0;
        std::vector<std::int32_t> text;
    };
    /// Number `index`; its spectrogram [frequencies, frames] is written, all of it.
    Utterance utterance(std::uint64_t index, std::span<float> spectrogram) const;
    /// The spectrum of label l begins at l * frequencies; the blank's, silence, is all 0.
    std::span<const float> spectra() const { return spectra_; }

  private:
    std::uint64_t seed_;
    std::int64_t frequencies_, frames_, labels_, most_;
    std::vector<float> spectra_;
};

/// The likeliest label of each step, repeats taken as one and blanks left out (best path decoding; Graves et al., ICML
/// 2006, section 3.2). `logits`: [steps, labels], rows `stride` apart.
std::vector<std::int32_t> greedy_labels(const float* logits, std::int64_t steps, std::int64_t labels,
                                        std::int64_t stride);

/// The fewest insertions, deletions and substitutions that make `from` `to` (Levenshtein).
std::int64_t edit_distance(std::span<const std::int32_t> from, std::span<const std::int32_t> to);

/// With 29 labels as the letters that speech models of English usually number so: the blank, an apostrophe, A to Z and
/// a space, written as _; else the numbers.
std::string text_of(std::span<const std::int32_t> labels, std::int64_t of_labels);

}  // namespace kbench
