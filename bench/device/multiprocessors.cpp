// Reads numbers of SMs from text, and chooses those that stand for shares of a device.
#include "bench/device/multiprocessors.h"

#include <fmt/format.h>

#include <cstddef>

namespace kbench {
namespace {

constexpr std::size_t fewest_in_steps = 4;

/// How many of `counts` from `first` on are at equal distances.
std::size_t evenly_spaced(std::span<const int> counts, std::size_t first) {
    std::size_t end = first + 1;
    while (end < counts.size() && counts[end] - counts[end - 1] == counts[first + 1] - counts[first]) ++end;
    return end - first;
}

}  // namespace

std::string counts_text(std::span<const int> counts) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < counts.size();) {
        const std::size_t length = evenly_spaced(counts, i);
        if (length < fewest_in_steps) {
            parts.push_back(fmt::to_string(counts[i++]));
            continue;
        }
        parts.push_back(
            fmt::format("{} to {} in steps of {}", counts[i], counts[i + length - 1], counts[i + 1] - counts[i]));
        i += length;
    }
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i)
        text += (i == 0 ? "" : i + 1 == parts.size() ? " or " : ", ") + parts[i];
    return text;
}

std::vector<int> counts_at_shares(std::span<const int> possible) {
    std::vector<int> chosen{possible.back()};
    for (const int quarters : {3, 2, 1}) {
        int largest = 0;
        for (const int count : possible)
            if (4 * count <= quarters * possible.back()) largest = count;
        if (largest > 0 && largest < chosen.back()) chosen.push_back(largest);
    }
    return chosen;
}

int multiprocessors_of_thief(int all) {
    constexpr int fewest = 2;
    const int count = (15 * all + 99) / 100;
    return count >= fewest ? count : 0;
}

}  // namespace kbench
