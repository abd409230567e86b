// Stretches of a sequence that repeat back to back.
//
//     const std::vector<std::uint32_t> sequence{7, 1, 2, 1, 2, 1, 2, 9};
//     kbench::find_repetition(sequence);  // begin 1, end 7, period 2: {1, 2} three times
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kbench {

/// Elements [begin, end) in which each equals the one `period` before it. Both neighbours end that, and no smaller
/// period does: what repeats is no repetition itself.
struct Repetition {
    std::size_t begin = 0, end = 0, period = 0;
    std::size_t length() const { return end - begin; }
    /// How often it fits in whole; at least twice.
    std::size_t count() const { return length() / period; }
    bool operator==(const Repetition&) const = default;
};

/// All maximal repetitions ("runs") of the sequence, fewer than its elements, in order of begin and period. Bannai et
/// al., "The Runs Theorem", SIAM J. Comput. 46 (2017), section 4: each is found from a longest Lyndon word. Common
/// prefixes are found by hashes, so that n elements take time n log n.
std::vector<Repetition> all_repetitions(std::span<const std::uint32_t> sequence);

/// The repetition whose whole periods cover the most elements, of those the one with the smallest period. Where its
/// period holds a shorter repetition and a rare extra, it is that shorter one: the longest stretch between two extras.
/// An extra is rare where it has at most a tenth as many elements as what repeats, which at least three times. (What
/// stands around the equal layers of a model is more than that of a layer.) Nothing where nothing repeats.
std::optional<Repetition> find_repetition(std::span<const std::uint32_t> sequence);

}  // namespace kbench
