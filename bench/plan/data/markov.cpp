// See markov.h.
#include "bench/plan/data/markov.h"

#include <algorithm>
#include <cmath>

#include "bench/plan/data/random.h"

namespace kbench {
namespace {

constexpr int likely = 4;
constexpr double of_likely = 0.9;

}  // namespace

double MarkovSource::uniform() {
    // The upper half of the counter is no hash of a stream's name by any likelihood that matters.
    const auto words = philox4x32_10(
        {static_cast<std::uint32_t>(drawn_), static_cast<std::uint32_t>(drawn_ >> 32), 0x4d61726bu, 0x6f76u},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++drawn_;
    return (static_cast<double>(words[0]) * 0x1p21 + static_cast<double>(words[1] >> 11)) * 0x1p-53;
}

MarkovSource::MarkovSource(std::uint64_t seed) : seed_(seed) {
    for (Row& row : transitions_) {
        row.fill((1 - of_likely) / states);
        std::array<double, likely> weights{};
        double sum = 0;
        for (double& weight : weights) sum += weight = 0.1 + uniform();
        // A successor that is drawn twice is so much likelier.
        for (const double weight : weights)
            row[static_cast<std::size_t>(uniform() * states)] += of_likely * weight / sum;
    }
    // Power iteration. What is not stationary shrinks to 0.9 or less a step, as 10 % go everywhere: 1e-18 is left.
    Row stationary;
    stationary.fill(1.0 / states);
    for (int step = 0; step < 400; ++step) {
        Row next{};
        for (std::size_t from = 0; from < states; ++from)
            for (std::size_t to = 0; to < states; ++to) next[to] += stationary[from] * transitions_[from][to];
        stationary = next;
    }
    for (std::size_t from = 0; from < states; ++from)
        for (const double p : transitions_[from]) entropy_ -= stationary[from] * p * std::log(p);
}

void MarkovSource::fill(std::span<std::int32_t> tokens) {
    for (std::int32_t& token : tokens) {
        double left = uniform();
        std::size_t next = 0;
        while (next + 1 < states && left >= transitions_[state_][next]) left -= transitions_[state_][next++];
        state_ = next;
        token = static_cast<std::int32_t>(next);
    }
}

}  // namespace kbench
