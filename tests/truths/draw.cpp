// Draws the numbers of a truth from its seed.
#include "tests/truths/draw.h"

#include <random>

namespace kbench {
namespace {

/// FNV-1a: std::hash may differ from library to library.
std::uint64_t hash(std::string_view text) {
    std::uint64_t value = 0xcbf29ce484222325u;
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return value;
}

}  // namespace

Drawn draw(std::string_view truth, std::uint64_t seed, std::span<const DrawRange> ranges) {
    std::mt19937_64 random(hash(truth) + seed);
    Drawn drawn;
    for (const DrawRange& range : ranges) {
        // Not by std::uniform_int_distribution, whose numbers are each library's own. That small values are likelier by
        // one part in 2^50 decides nothing.
        const auto choices = static_cast<std::uint64_t>((range.high - range.low) / range.step + 1);
        drawn.set(range.what, range.low + static_cast<std::int64_t>(random() % choices) * range.step);
    }
    return drawn;
}

}  // namespace kbench
