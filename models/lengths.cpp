// Draws lengths of utterances, and computes how much of a padded batch's work they need.
#include "models/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>

#include "kbench/error.h"

namespace kbench {
namespace {

/// A uniform number in [0, 1). The standard fixes the engine's numbers but not those of its own distributions.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

/// A nearly standard normal number within [-6, 6]: the sum of twelve uniform ones. It needs no logarithm, which
/// machines round differently.
double normal(std::mt19937_64& engine) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(engine);
    return sum;
}

double utterance_seconds(std::mt19937_64& engine) {
    constexpr double tail = 0.22, shortest = 1.5, tail_end = 13, usual = 14.2, deviation = 1.5;
    if (uniform(engine) < tail) return shortest + (tail_end - shortest) * uniform(engine);
    return usual + deviation * normal(engine);  // 5.2 to 23.2
}

/// FLOPs of each op of the model.
std::vector<double> flops_of(const Model& model) {
    std::vector<double> flops;
    for (const OpNode& node : model.ops) flops.push_back(node.op.work(node.direction).flops);
    return flops;
}

}  // namespace

std::vector<std::int32_t> librispeech_like(std::uint64_t seed, std::int64_t batch, std::int64_t longest) {
    std::mt19937_64 engine(seed);
    std::vector<double> seconds(static_cast<std::size_t>(batch));
    for (double& one : seconds) one = utterance_seconds(engine);
    std::ranges::sort(seconds, std::greater<>());
    std::vector<std::int32_t> lengths;
    for (const double one : seconds) {
        const auto frames = std::llround(one / seconds.front() * static_cast<double>(longest));
        lengths.push_back(static_cast<std::int32_t>(std::max(1LL, frames)));
    }
    return lengths;
}

std::vector<double> useful_flops(const ModelSpec& spec, const ModelPoint& point,
                                 std::span<const std::int32_t> lengths) {
    const auto flops_at = [&](std::int64_t batch, std::int64_t frames) {
        ModelPoint at = point;
        at.counts["batch"] = batch;
        at.counts[std::string(frames_name)] = frames;
        return flops_of(spec.build(at));
    };
    const std::int64_t longest = point.count(frames_name);
    const auto batch = static_cast<std::int64_t>(lengths.size());
    const std::vector<double> padded = flops_at(batch, longest);
    const auto scaled = [](std::vector<double> flops, double share) {
        for (double& op : flops) op *= share;
        return flops;
    };
    // A model may refuse to train on one sequence so short that it has no variance. Then work scales with length.
    const auto flops_alone = [&](std::int64_t frames, const std::vector<double>& of, double share) {
        try {
            return flops_at(1, frames);
        } catch (const UsageError&) {
            return scaled(of, share);
        }
    };
    const std::vector<double> one = flops_alone(longest, padded, 1 / static_cast<double>(batch));
    std::map<std::int32_t, int> sequences;  // number of sequences by length
    for (const std::int32_t length : lengths)
        if (length > 0) ++sequences[length];

    std::vector<double> useful(padded.size());
    double counted = 0;
    for (const auto& [length, count] : sequences) {
        const std::vector<double> alone =
            flops_alone(length, one, static_cast<double>(length) / static_cast<double>(longest));
        if (alone.size() != useful.size())
            throw std::logic_error(fmt::format("{} has other ops at {} frames than at {}", spec.name, length, longest));
        for (std::size_t i = 0; i < useful.size(); ++i) useful[i] += count * alone[i];
        counted += count;
    }
    if (batch == 1 || counted == 0) return useful;
    for (std::size_t i = 0; i < useful.size(); ++i) {
        const double once = (static_cast<double>(batch) * one[i] - padded[i]) / static_cast<double>(batch - 1);
        useful[i] -= (counted - 1) * once;
    }
    return useful;
}

}  // namespace kbench
