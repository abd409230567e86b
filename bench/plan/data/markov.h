// Synthetic text whose entropy is known, so that a loss can be judged: what a model can reach is a number.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kbench {

/// A first-order Markov chain over 64 tokens. Each has four likely successors with 90 % of the probability; the rest is
/// shared by all, so that every token follows every other. One endless sequence: the next call goes on where the last
/// one ended. Drawn by Philox: the same of one seed on every machine.
class MarkovSource {
  public:
    static constexpr int states = 64;

    explicit MarkovSource(std::uint64_t seed);

    /// The probability that `to` follows `from`.
    double probability(int from, int to) const { return transitions_[at(from)][at(to)]; }
    /// Nats a token, of one whose predecessor is known: -sum p(i) P(i, j) ln P(i, j) with the stationary distribution p
    /// (Cover and Thomas, "Elements of Information Theory", 2nd ed., theorem 4.2.4). No model's mean loss on this
    /// source lies below it but by chance.
    double entropy() const { return entropy_; }
    /// The next tokens.
    void fill(std::span<std::int32_t> tokens);
    /// As if so many tokens had been drawn, in a time that does not grow with their number.
    void skip(std::uint64_t tokens);

  private:
    using Row = std::array<double, states>;
    static std::size_t at(int state) { return static_cast<std::size_t>(state); }
    double uniform();
    /// The token behind `from` where the source drew `u`.
    std::size_t successor(std::size_t from, double u) const;

    std::array<Row, states> transitions_{};
    double entropy_ = 0;
    std::uint64_t seed_, drawn_ = 0;
    std::size_t state_ = 0;
};

}  // namespace kbench
