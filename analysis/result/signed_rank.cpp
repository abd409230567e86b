// Walsh averages are counted and not listed: a thousand values have half a million.
#include "analysis/result/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/result/student_t.h"

namespace kbench {
namespace {

/// How many Walsh averages of `sorted` are at most `bound`.
std::size_t averages_up_to(std::span<const double> sorted, double bound) {
    std::size_t count = 0;
    for (std::size_t i = 0, end = sorted.size(); i < end; ++i) {
        while (end > i && sorted[i] + sorted[end - 1] > 2 * bound) --end;
        count += end - i;
    }
    return count;
}

/// The `rank`-th smallest of them, from 1.
double average_of_rank(std::span<const double> sorted, std::size_t rank) {
    constexpr int most_halvings = 100;  // more would only find a 0 more exactly
    double below = sorted.front(), at_least = sorted.back();
    if (averages_up_to(sorted, below) >= rank) return below;
    for (int halving = 0; halving < most_halvings; ++halving) {
        const double middle = below + (at_least - below) / 2;
        if (!(middle > below && middle < at_least)) break;
        (averages_up_to(sorted, middle) >= rank ? at_least : below) = middle;
    }
    return at_least;
}

/// How many of the smallest Walsh averages of `count` values lie outside an interval that errs in `error`; 0: none may.
std::size_t ranks_outside(std::size_t count, double error) {
    constexpr std::size_t most_counted_out = 60;
    const auto n = static_cast<double>(count);
    if (count > most_counted_out) {
        const double deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
        return static_cast<std::size_t>(std::max(0.0, n * (n + 1) / 4 - normal_quantile(1 - error / 2) * deviation));
    }
    // How probable each sum of some of the ranks 1 to n is where every rank is in it by the toss of a coin.
    std::vector<double> probability(count * (count + 1) / 2 + 1, 0.0);
    probability[0] = 1;
    for (std::size_t rank = 1, most = 0; rank <= count; most += rank++) {
        for (std::size_t sum = most + 1; sum-- > 0;) {
            probability[sum] /= 2;
            probability[sum + rank] += probability[sum];
        }
    }
    double below = 0;
    std::size_t outside = 0;
    while (below + probability[outside] <= error / 2) below += probability[outside++];
    return outside;
}

}  // namespace

std::optional<Interval> hodges_lehmann(std::span<const double> values, double error) {
    const std::size_t outside = ranks_outside(values.size(), error);
    if (values.empty() || outside == 0) return std::nullopt;
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t averages = sorted.size() * (sorted.size() + 1) / 2;
    const double centre = (average_of_rank(sorted, (averages + 1) / 2) + average_of_rank(sorted, averages / 2 + 1)) / 2;
    return Interval{centre, average_of_rank(sorted, outside), average_of_rank(sorted, averages + 1 - outside)};
}

}  // namespace kbench
