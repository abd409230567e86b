// The frequencies of rotary embeddings, stretched as transformers' modeling_rope_utils.py does it, in fp64.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/llama.h"
#include "models/ops/rotary_embedding.h"

namespace kbench {
namespace {

/// Grattafiori et al., The Llama 3 Herd of Models, 2024: long waves are stretched, short ones kept, and those between
/// are both by shares.
double stretched_as_llama3(const Rope& rope, double frequency) {
    const double turns = rope.original_length * frequency / (2 * std::numbers::pi);  // over the original length
    if (turns < rope.low_freq_factor) return frequency / rope.factor;
    if (turns > rope.high_freq_factor) return frequency;
    const double kept = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    return (1 - kept) * frequency / rope.factor + kept * frequency;
}

/// Peng et al., YaRN, 2023, section 3.2: a ramp over the pairs between those that turn beta_fast times over the
/// original length, which are kept, and those that turn beta_slow times, which are stretched.
std::vector<double> stretched_by_yarn(const Rope& rope, std::int64_t head_size, std::vector<double> frequencies) {
    const auto size = static_cast<double>(head_size);
    const auto pair_that_turns = [&](double times) {
        return size * std::log(rope.original_length / (times * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
    };
    double first = pair_that_turns(rope.beta_fast), last = pair_that_turns(rope.beta_slow);
    if (rope.truncate) {
        first = std::floor(first);
        last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, size - 1);
    constexpr double no_division_by_zero = 0.001;  // transformers'
    if (first == last) last += no_division_by_zero;
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const double stretched = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
        frequencies[i] *= 1 - stretched + stretched / rope.factor;
    }
    return frequencies;
}

}  // namespace

std::vector<double> rope_frequencies(const Rope& rope, std::int64_t head_size) {
    std::vector<double> frequencies = RotaryEmbedding::plain_frequencies(head_size, rope.theta);
    switch (rope.type) {
        case RopeType::plain: break;
        case RopeType::linear:
            for (double& frequency : frequencies) frequency /= rope.factor;
            break;
        case RopeType::llama3:
            for (double& frequency : frequencies) frequency = stretched_as_llama3(rope, frequency);
            break;
        case RopeType::yarn: return stretched_by_yarn(rope, head_size, std::move(frequencies));
    }
    return frequencies;
}

}  // namespace kbench
