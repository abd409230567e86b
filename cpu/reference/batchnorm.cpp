// Reference of batch norm: with running statistics, in training, and its backward.
#include <algorithm>

#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> normalised(const BatchNorm& op, std::vector<Expected> sums, View weight, View bias, View mean,
                                 View variance, std::span<const Element> elements) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::int64_t channel = op.channels > 0 ? elements[i].row / op.height % op.channels : elements[i].column;
        const double scale = at(weight, channel) / std::sqrt(at(variance, channel) + op.epsilon);
        const double center = at(mean, channel), shift = at(bias, channel);
        // An implementation that folds the mean into the bias rounds scale x and scale mean, which may cancel.
        // Epsilon's sum, root, quotient and product round scale four times, each relative to the whole.
        constexpr std::int64_t roundings = 8;
        Expected& sum = sums[i];
        sum.value = (sum.value - center) * scale + shift;
        sum.magnitude = (sum.magnitude + std::abs(center)) * std::abs(scale) + std::abs(shift);
        sum.terms += roundings;
        for (double* effect : {&sum.carried, &sum.inner, &sum.inputs}) *effect *= std::abs(scale);
    }
    return sums;
}

std::vector<Expected> batch_norm(const BatchNorm& op, View x, View weight, View bias, View mean, View variance,
                                 std::span<const Element> elements, View residual) {
    std::vector<Expected> values;
    for (const auto [row, column] : elements) {
        const double first = x(row, column), second = residual ? residual(row, column) : 0.0;
        values.push_back({first + second, std::abs(first) + std::abs(second), residual ? 1 : 0});
    }
    return normalised(op, std::move(values), weight, bias, mean, variance, elements);
}

namespace {

constexpr std::int64_t other_roundings = 16;

std::int64_t channel_of(const BatchNorm& op, const Element& e) {
    return op.channels > 0 ? e.row / op.height % op.channels : e.column;
}

/// Calls visit(channel, row, column) for every element of the `wanted` channels, each channel's elements from one
/// thread: a channel's sums are made once for all elements that need them. Columns go side by side, as they lie.
template <class Visit>
void for_each_of(const BatchNorm& op, const std::vector<char>& wanted, Visit visit) {
    const std::int64_t channels = op.channel_count();
    if (op.channels > 0) {
#pragma omp parallel for schedule(dynamic)
        for (std::int64_t channel = 0; channel < channels; ++channel) {
            if (!wanted[static_cast<std::size_t>(channel)]) continue;
            for (std::int64_t first = channel * op.height; first < op.rows; first += channels * op.height)
                for (std::int64_t row = first; row < first + op.height; ++row)
                    for (std::int64_t column = 0; column < op.width; ++column) visit(channel, row, column);
        }
        return;
    }
    constexpr std::int64_t side_by_side = 64;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t first = 0; first < channels; first += side_by_side)
        for (std::int64_t row = 0; row < op.rows; ++row)
            for (std::int64_t column = first; column < std::min(channels, first + side_by_side); ++column)
                if (wanted[static_cast<std::size_t>(column)]) visit(column, row, column);
}

/// Which channels the elements belong to. They are in an output with a column per channel, or in x's shape.
std::vector<char> wanted_by(const BatchNorm& op, std::span<const Element> elements, bool columns_are_channels) {
    std::vector<char> wanted(static_cast<std::size_t>(op.channel_count()));
    for (const Element& e : elements)
        wanted[static_cast<std::size_t>(columns_are_channels ? e.column : channel_of(op, e))] = 1;
    return wanted;
}

struct ChannelStatistics {
    double mean = 0, mean_magnitude = 0, mean_square = 0, variance = 0, rstd = 0;
    /// rstd's error relative to rstd: from the sum of squares as in layer norm, and from what rounding the sum
    /// x + residual changes in the deviations. A variance from E[x^2] - mean^2 loses the square of that ratio.
    double of_rstd() const { return 1.0 + std::sqrt(mean_square) * rstd; }
};

struct Sum {
    double value, magnitude;
};
Sum sum_at(const View& x, const View& residual, std::int64_t row, std::int64_t column) {
    const double a = x(row, column), b = residual ? residual(row, column) : 0.0;
    return {a + b, std::abs(a) + std::abs(b)};
}

std::vector<ChannelStatistics> statistics_of(const BatchNorm& op, const View& x, const View& residual,
                                             const std::vector<char>& wanted) {
    std::vector<ChannelStatistics> statistics(wanted.size());
    const double share = 1.0 / static_cast<double>(op.count());
    for_each_of(op, wanted, [&](std::int64_t channel, std::int64_t row, std::int64_t column) {
        const Sum s = sum_at(x, residual, row, column);
        ChannelStatistics& of = statistics[static_cast<std::size_t>(channel)];
        of.mean += s.value * share;
        of.mean_magnitude += s.magnitude * share;
        of.mean_square += s.magnitude * s.magnitude * share;
    });
    for_each_of(op, wanted, [&](std::int64_t channel, std::int64_t row, std::int64_t column) {
        ChannelStatistics& of = statistics[static_cast<std::size_t>(channel)];
        const double deviation = sum_at(x, residual, row, column).value - of.mean;
        of.variance += deviation * deviation * share;
    });
    for (ChannelStatistics& of : statistics) of.rstd = 1.0 / std::sqrt(of.variance + op.epsilon);
    return statistics;
}

/// The output that is asked for.
enum class Asked { running_mean, running_var, mean, rstd, out };

std::vector<Expected> in_training(const BatchNorm& op, Asked asked, View x, View residual, View weight, View bias,
                                  View running, std::span<const Element> elements) {
    const auto statistics = statistics_of(op, x, residual, wanted_by(op, elements, asked != Asked::out));
    const auto count = static_cast<double>(op.count());
    const std::int64_t terms = op.count() + other_roundings;
    std::vector<Expected> expected;
    for (const Element& e : elements) {
        const std::int64_t channel = asked == Asked::out ? channel_of(op, e) : e.column;
        const ChannelStatistics& of = statistics[static_cast<std::size_t>(channel)];
        const auto moved = [&](double batch, double magnitude) -> Expected {
            const double before = at(running, channel);
            return {before + op.momentum * (batch - before),
                    std::abs(before) * (1 + op.momentum) + op.momentum * magnitude, terms};
        };
        const double unbiased = of.variance * count / (count - 1);
        if (asked == Asked::running_mean) expected.push_back(moved(of.mean, of.mean_magnitude));
        if (asked == Asked::running_var) expected.push_back(moved(unbiased, unbiased * of.of_rstd()));
        if (asked == Asked::mean) expected.push_back({of.mean, of.mean_magnitude, terms});
        if (asked == Asked::rstd) expected.push_back({of.rstd, of.rstd * of.of_rstd(), terms});
        if (asked != Asked::out) continue;
        const Sum s = sum_at(x, residual, e.row, e.column);
        const double w = at(weight, channel), b = at(bias, channel), normal = (s.value - of.mean) * of.rstd * w;
        expected.push_back(
            {normal + b,
             (s.magnitude + of.mean_magnitude) * of.rstd * std::abs(w) + std::abs(normal) * of.of_rstd() + std::abs(b),
             terms});
    }
    return expected;
}

/// A channel's sums of dy and of dy n, and the sums of their terms' magnitudes.
struct ChannelSums {
    double dy = 0, dy_magnitude = 0, dyn = 0, dyn_magnitude = 0;
};
enum class Gradient { dx, dw, db };

std::vector<Expected> gradient(const BatchNorm& op, Gradient asked, View x, View dy, View weight, View mean, View rstd,
                               std::span<const Element> elements) {
    const auto wanted = wanted_by(op, elements, asked != Gradient::dx);
    std::vector<ChannelSums> sums(wanted.size());
    // n may be computed from x rstd and mean rstd, which may cancel.
    const auto normal = [&](double value, std::int64_t channel) {
        return (value - at(mean, channel)) * at(rstd, channel);
    };
    const auto magnitude = [&](double value, std::int64_t channel) {
        return (std::abs(value) + std::abs(at(mean, channel))) * std::abs(at(rstd, channel));
    };
    for_each_of(op, wanted, [&](std::int64_t channel, std::int64_t row, std::int64_t column) {
        ChannelSums& of = sums[static_cast<std::size_t>(channel)];
        const double value = x(row, column), g = dy(row, column);
        of.dy += g;
        of.dy_magnitude += std::abs(g);
        of.dyn += g * normal(value, channel);
        of.dyn_magnitude += std::abs(g) * magnitude(value, channel);
    });
    const std::int64_t terms = op.count() + other_roundings;
    const double share = 1.0 / static_cast<double>(op.count());
    std::vector<Expected> expected;
    for (const Element& e : elements) {
        const std::int64_t channel = asked == Gradient::dx ? channel_of(op, e) : e.column;
        const ChannelSums& of = sums[static_cast<std::size_t>(channel)];
        if (asked == Gradient::dw) expected.push_back({of.dyn, of.dyn_magnitude, terms});
        if (asked == Gradient::db) expected.push_back({of.dy, of.dy_magnitude, terms});
        if (asked != Gradient::dx) continue;
        const double value = x(e.row, e.column), g = dy(e.row, e.column);
        const double scale = at(weight, channel) * at(rstd, channel);
        expected.push_back({scale * (g - of.dy * share - normal(value, channel) * of.dyn * share),
                            std::abs(scale) * (std::abs(g) + of.dy_magnitude * share +
                                               magnitude(value, channel) * of.dyn_magnitude * share),
                            terms});
    }
    return expected;
}

}  // namespace

std::vector<Expected> expected(const BatchNorm& op, Question q) {
    if (q.step.direction == Direction::bwd) {
        const View x = q.next(), dy = q.next(), weight = q.next(), mean = q.next(), rstd = q.next();
        const auto of = [&](Gradient asked) { return gradient(op, asked, x, dy, weight, mean, rstd, q.elements); };
        // An operand that is worked on in place stands among the inputs.
        if (!op.accumulates) {
            if (q.asks_for_next()) return of(Gradient::dx);
            q.next();
        }
        for (const Gradient asked : {Gradient::dw, Gradient::db}) {
            if (q.asks_for_next()) return op.accumulates ? added_to(q.next(), q.elements, of(asked)) : of(asked);
            q.next();
        }
        return of(Gradient::dx);
    }
    const View x = q.next(), residual = q.next_if(q.step.absorbs<ResidualAdd>());
    const View weight = q.next(), bias = q.next();
    if (!op.training) {
        const View mean = q.next(), variance = q.next();
        if (q.step.keeps_intermediates() && q.asks_for_next()) return residual_add(x, residual, q.elements);
        return batch_norm(op, x, weight, bias, mean, variance, q.elements, residual);
    }
    const auto of = [&](Asked asked, View running = {}) {
        return in_training(op, asked, x, residual, weight, bias, running, q.elements);
    };
    for (const Asked asked : {Asked::running_mean, Asked::running_var}) {
        if (q.asks_for_next()) return of(asked, q.next());
        q.next();
    }
    if (q.step.keeps_intermediates()) {
        if (q.asks_for_next()) return residual_add(x, residual, q.elements);
        q.next();
    }
    for (const Asked asked : {Asked::mean, Asked::rstd}) {
        if (q.asks_for_next()) return of(asked);
        q.next();
    }
    return of(Asked::out);
}
/// In training and backward an element needs its channel's sums, which all elements of a question share: one pass over
/// the input, however many elements are asked for.
ElementCost cost(const BatchNorm& op) {
    return op.training ? ElementCost{static_cast<double>(other_roundings), op.width} : ElementCost{};
}

}  // namespace kbench::reference
