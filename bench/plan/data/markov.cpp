// Draws a Markov chain of tokens, and computes its entropy.
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

std::size_t MarkovSource::successor(std::size_t from, double u) const {
    std::size_t next = 0;
    while (next + 1 < states && u >= transitions_[from][next]) u -= transitions_[from][next++];
    return next;
}

void MarkovSource::fill(std::span<std::int32_t> tokens) {
    for (std::int32_t& token : tokens) {
        state_ = successor(state_, uniform());
        token = static_cast<std::int32_t>(state_);
    }
}

void MarkovSource::skip(std::uint64_t tokens) {
    // The same draws lead all states to one within some hundred tokens: a draw below 0.1 / 64 leads each to token 0.
    // Where they have met, what came before the last draws decides nothing.
    const std::uint64_t begin = drawn_;
    for (std::uint64_t last = 4096; last < tokens; last *= 2) {
        std::array<std::size_t, states> reached{};
        for (std::size_t from = 0; from < states; ++from) reached[from] = from;
        drawn_ = begin + tokens - last;
        for (std::uint64_t i = 0; i < last; ++i) {
            const double u = uniform();
            for (std::size_t& state : reached) state = successor(state, u);
        }
        if (std::ranges::count(reached, reached.front()) < states) continue;
        state_ = reached.front();
        return;
    }
    drawn_ = begin;
    for (std::uint64_t i = 0; i < tokens; ++i) state_ = successor(state_, uniform());
}

}  // namespace kbench
