// Synthetic speech: its text can be read off its spectrogram, and what reads and compares texts.
#include "bench/plan/data/speech.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace kbench {
namespace {

constexpr std::int64_t frequencies = 161, frames = 400, labels = 29, most = 60;

/// By the nearest spectrum of each frame, repeats taken as one and silence left out.
std::vector<std::int32_t> read_off(const SpeechSource& source, const std::vector<float>& spectrogram,
                                   std::int64_t length) {
    std::vector<float> scores(static_cast<std::size_t>(length * labels));
    for (std::int64_t frame = 0; frame < length; ++frame)
        for (std::int64_t label = 0; label < labels; ++label)
            for (std::int64_t f = 0; f < frequencies; ++f) {
                const float away = spectrogram[static_cast<std::size_t>(f * frames + frame)] -
                                   source.spectra()[static_cast<std::size_t>(label * frequencies + f)];
                scores[static_cast<std::size_t>(frame * labels + label)] -= away * away;
            }
    return greedy_labels(scores.data(), length, labels, labels);
}

TEST(SpeechSource, ItsTextCanBeReadOffItsSpectrogram) {
    const SpeechSource source(3, frequencies, frames, labels, most);
    std::set<std::int32_t> seen;
    bool neighbours = false, shorter = false;
    for (std::uint64_t i = 0; i < 20; ++i) {
        std::vector<float> spectrogram(frequencies * frames, std::numeric_limits<float>::quiet_NaN());
        const SpeechSource::Utterance one = source.utterance(i, spectrogram);
        EXPECT_EQ(read_off(source, spectrogram, one.frames), one.text) << "utterance " << i;
        EXPECT_GE(one.frames, frames * 6 / 10);
        EXPECT_LE(one.frames, frames);
        EXPECT_LE(one.text.size(), static_cast<std::size_t>(most));
        EXPECT_GT(one.text.size(), 20u);
        for (std::int64_t f = 0; f < frequencies; ++f)
            for (std::int64_t frame = one.frames; frame < frames; ++frame)
                ASSERT_EQ(spectrogram[static_cast<std::size_t>(f * frames + frame)], 0.0f);
        seen.insert(one.text.begin(), one.text.end());
        for (std::size_t k = 1; k < one.text.size(); ++k) neighbours |= one.text[k] == one.text[k - 1];
        shorter |= one.frames < frames * 8 / 10;
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(labels - 1)) << "every label but the blank";
    EXPECT_TRUE(neighbours);
    EXPECT_TRUE(shorter);
}

TEST(SpeechSource, ReadsAnotherTextOffAnotherUtterance) {
    const SpeechSource source(3, frequencies, frames, labels, most);
    std::vector<float> spectrogram(frequencies * frames), other(frequencies * frames);
    const SpeechSource::Utterance one = source.utterance(0, spectrogram);
    EXPECT_NE(source.utterance(1, other).text, one.text);
    EXPECT_NE(read_off(source, other, one.frames), one.text);
    std::vector<float> again(frequencies * frames);
    EXPECT_EQ(SpeechSource(3, frequencies, frames, labels, most).utterance(0, again).text, one.text);
    EXPECT_EQ(again, spectrogram);
    EXPECT_NE(SpeechSource(4, frequencies, frames, labels, most).utterance(0, again).text, one.text);
}

TEST(GreedyLabels, TakesRepeatsAsOneAndLeavesBlanksOut) {
    const std::vector<int> best = {0, 2, 2, 0, 2, 1, 1, 0};
    std::vector<float> logits(best.size() * 4, 0);  // rows of three labels, four apart
    for (std::size_t step = 0; step < best.size(); ++step) {
        logits[step * 4 + static_cast<std::size_t>(best[step])] = 1;
        logits[step * 4 + 3] = 9;  // padding
    }
    EXPECT_EQ(greedy_labels(logits.data(), 8, 3, 4), (std::vector<std::int32_t>{2, 2, 1}));
    EXPECT_EQ(greedy_labels(logits.data(), 3, 3, 4), (std::vector<std::int32_t>{2}));
    EXPECT_TRUE(greedy_labels(logits.data(), 0, 3, 4).empty());
}

TEST(EditDistance, CountsInsertionsDeletionsAndSubstitutions) {
    using Text = std::vector<std::int32_t>;
    const Text kitten{11, 9, 20, 20, 5, 14}, sitting{19, 9, 20, 20, 9, 14, 7};
    EXPECT_EQ(edit_distance(kitten, sitting), 3);
    EXPECT_EQ(edit_distance(sitting, kitten), 3);
    EXPECT_EQ(edit_distance(kitten, kitten), 0);
    EXPECT_EQ(edit_distance(Text{}, kitten), 6);
    EXPECT_EQ(edit_distance(kitten, Text{}), 6);
    EXPECT_EQ(edit_distance(Text{1, 2, 3, 4}, Text{2, 3, 4, 5}), 2) << "not position by position";
}

TEST(TextOf, WritesLettersOfTwentyNineLabels) {
    EXPECT_EQ(text_of(std::vector<std::int32_t>{9, 10, 28, 1, 27}, 29), "HI_'Z");
    EXPECT_EQ(text_of(std::vector<std::int32_t>{9, 10}, 30), "9 10");
}

}  // namespace
}  // namespace kbench
