// Computes the edit distance row by row and picks the nearest names, which the name may be a part of.
#include "models/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <tuple>
#include <utility>

namespace kbench {
namespace {

bool same_letter(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

enum class Overlap { begin, within, none };  ///< nearer first

/// Where in `whole` the name stands.
Overlap overlap_of(std::string_view name, std::string_view whole) {
    const auto found = std::search(whole.begin(), whole.end(), name.begin(), name.end(), same_letter);
    if (found == whole.end() && !name.empty()) return Overlap::none;
    return found == whole.begin() ? Overlap::begin : Overlap::within;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names, std::size_t count) {
    std::vector<std::tuple<Overlap, std::size_t, std::size_t>> order;  // overlap, distance, index
    for (std::size_t i = 0; i < names.size(); ++i)
        order.emplace_back(overlap_of(name, names[i]), edit_distance(name, names[i]), i);
    std::ranges::sort(order);
    std::vector<std::string> nearest;
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i) nearest.push_back(names[std::get<2>(order[i])]);
    return nearest;
}

}  // namespace kbench
