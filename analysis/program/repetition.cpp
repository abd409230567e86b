#include "analysis/program/repetition.h"

#include <algorithm>
#include <tuple>

namespace kbench {
namespace {

/// Polynomial hashes of all prefixes modulo the prime 2^61 - 1, by which stretches compare in constant time.
class Hashes {
  public:
    explicit Hashes(std::span<const std::uint32_t> sequence) : sequence_(sequence) {
        prefix_.resize(sequence.size() + 1);
        power_.resize(sequence.size() + 1, 1);
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            prefix_[i + 1] = reduced(product(prefix_[i], base) + sequence[i] + 1);
            power_[i + 1] = product(power_[i], base);
        }
    }

    /// Number of elements from `a` and from `b` on that are equal.
    std::size_t common_after(std::size_t a, std::size_t b) const {
        const std::size_t most = sequence_.size() - std::max(a, b);
        return longest(most, [&](std::size_t from, std::size_t n) {
            return n == 1 ? sequence_[a + from] == sequence_[b + from] : hash(a + from, n) == hash(b + from, n);
        });
    }
    /// Number of elements that end before `a` and before `b` and are equal.
    std::size_t common_before(std::size_t a, std::size_t b) const {
        return longest(std::min(a, b), [&](std::size_t from, std::size_t n) {
            return n == 1 ? sequence_[a - from - 1] == sequence_[b - from - 1]
                          : hash(a - from - n, n) == hash(b - from - n, n);
        });
    }

  private:
    static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1, base = 0x12a7c3d94e6b58f1 % prime;

    static std::uint64_t reduced(std::uint64_t value) { return value >= prime ? value - prime : value; }
    static std::uint64_t product(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        const Wide wide = static_cast<Wide>(a) * b;
        return reduced(static_cast<std::uint64_t>(wide & prime) + static_cast<std::uint64_t>(wide >> 61));
    }
    std::uint64_t hash(std::size_t begin, std::size_t n) const {
        return reduced(prefix_[begin + n] + prime - product(prefix_[begin], power_[n]));
    }

    /// The largest n up to `most` for which the first n are equal: steps that double, then halve. Most comparisons end
    /// after an element or two.
    template <class Equal>
    static std::size_t longest(std::size_t most, const Equal& equal) {
        std::size_t known = 0, step = 1;
        while (known + step <= most && equal(known, step)) {
            known += step;
            step *= 2;
        }
        while (step > 1) {
            step /= 2;
            if (known + step <= most && equal(known, step)) known += step;
        }
        return known;
    }

    std::span<const std::uint32_t> sequence_;
    std::vector<std::uint64_t> prefix_, power_;
};

/// For each element the end of the longest Lyndon word that begins there: the next suffix that is smaller, in the order
/// of numbers or in its reverse.
std::vector<std::size_t> lyndon_ends(std::span<const std::uint32_t> sequence, const Hashes& hashes, bool reversed) {
    const std::size_t n = sequence.size();
    const auto is_smaller = [&](std::size_t a, std::size_t b) {  // suffix a than suffix b
        const std::size_t common = hashes.common_after(a, b);
        if (std::max(a, b) + common == n) return a > b;
        return (sequence[a + common] < sequence[b + common]) != reversed;
    };
    std::vector<std::size_t> ends(n, n);
    for (std::size_t i = n; i-- > 0;) {
        std::size_t end = i + 1;
        while (end < n && is_smaller(i, end)) end = ends[end];
        ends[i] = end;
    }
    return ends;
}

auto place(const Repetition& repetition) { return std::tuple(repetition.begin, repetition.period, repetition.end); }

std::size_t covered(const Repetition& repetition) { return repetition.count() * repetition.period; }

/// Whether each element equals the one a period before it.
bool is_repetition(std::span<const std::uint32_t> sequence, const Repetition& repetition) {
    return std::equal(sequence.begin() + static_cast<std::ptrdiff_t>(repetition.begin + repetition.period),
                      sequence.begin() + static_cast<std::ptrdiff_t>(repetition.end),
                      sequence.begin() + static_cast<std::ptrdiff_t>(repetition.begin));
}

/// The repetition within one period of `outer` that leaves at most a tenth of its own period, if there is one.
std::optional<Repetition> between_extras(const std::vector<Repetition>& all, const Repetition& outer) {
    std::optional<Repetition> best;
    for (const Repetition& inner : all) {
        if (inner.period >= outer.period || inner.count() < 3) continue;
        if (inner.begin < outer.begin || inner.end > outer.end) continue;
        const std::size_t rest = outer.period - std::min(outer.period, covered(inner));
        if (10 * rest > inner.period) continue;
        if (!best || covered(inner) > covered(*best)) best = inner;
    }
    return best;
}

}  // namespace

std::vector<Repetition> all_repetitions(std::span<const std::uint32_t> sequence) {
    const Hashes hashes(sequence);
    std::vector<Repetition> found;
    for (const bool reversed : {false, true}) {
        const std::vector<std::size_t> ends = lyndon_ends(sequence, hashes, reversed);
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            const std::size_t next = ends[i];
            if (next == sequence.size()) continue;
            const Repetition repetition{i - hashes.common_before(i, next), next + hashes.common_after(i, next),
                                        next - i};
            if (repetition.count() >= 2) found.push_back(repetition);
        }
    }
    std::ranges::sort(found, {}, place);
    const auto twice = std::ranges::unique(found);
    found.erase(twice.begin(), twice.end());
    return found;
}

std::optional<Repetition> find_repetition(std::span<const std::uint32_t> sequence) {
    const std::vector<Repetition> all = all_repetitions(sequence);
    const auto best = std::ranges::max_element(all, [&](const Repetition& a, const Repetition& b) {
        return std::pair(covered(a), b.period) < std::pair(covered(b), a.period);
    });
    if (best == all.end()) return std::nullopt;
    Repetition chosen = *best;
    while (const std::optional<Repetition> inner = between_extras(all, chosen)) chosen = *inner;
    // Equal hashes of what differs are as likely as 1 in 10^12; then nothing is said rather than something wrong.
    return is_repetition(sequence, chosen) ? std::optional(chosen) : std::nullopt;
}

}  // namespace kbench
