// Computes the edit distance row by row and picks the nearest names, which the name may be a part of.
#include "models/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// Longer lists hide the answer: 33 machines are 500 letters.
constexpr std::size_t longest_list = 24;

/// Two letters that change places are two edits; in short names those make another word, such as none of some.
bool is_slip(std::size_t edits, std::string_view name) {
    return edits <= (name.size() < 2 ? 0U : name.size() < 5 ? 1U : 2U);
}

/// Those of the `nearest`, the nearest first, that may be meant.
std::vector<std::string> meant(std::string_view name, std::vector<std::string> nearest) {
    if (name.empty() || nearest.empty()) return {};
    const auto holds = [name](const std::string& one) { return overlap_of(name, one) != Overlap::none; };
    const bool differs_in_case = edit_distance(name, nearest.front()) == 0;
    if (holds(nearest.front()) && !differs_in_case) {
        std::erase_if(nearest, std::not_fn(holds));
        return nearest;
    }
    nearest.resize(1);
    if (!is_slip(edit_distance(name, nearest.front()), name)) nearest.clear();
    return nearest;
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

std::string nearest_name(std::string_view name, std::span<const std::string> names) {
    const std::vector<std::string> nearest = nearest_names(name, names), near = meant(name, nearest);
    const bool is_listed = names.size() <= longest_list;
    if (near.empty())
        return is_listed ? fmt::format("must be one of {}", fmt::join(names, ", "))
                         : fmt::format("nearest: {}", fmt::join(nearest, ", "));
    const auto but_last = std::span(near).first(near.size() - 1);
    const std::string question =
        fmt::format("did you mean {}{}{}?", fmt::join(but_last, ", "), but_last.empty() ? "" : " or ", near.back());
    return is_listed ? fmt::format("{} One of {}", question, fmt::join(names, ", ")) : question;
}

}  // namespace kbench
