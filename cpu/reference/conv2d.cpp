// Reference of the convolution and its gradients: the sums as defined.
#include <algorithm>

#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> conv2d(const Conv2d& op, View x, View weight, View bias, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    // Elements of an output row share its rows of x and its filter.
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t p = elements[first].row % op.out_height();
        const std::int64_t filter = elements[first].row / op.out_height() % op.out_channels;
        const std::int64_t image = elements[first].row / op.out_height() / op.out_channels;
        std::vector<Dot> sums(last - first);
        std::vector<double> line(static_cast<std::size_t>(op.width)), taps(static_cast<std::size_t>(op.kernel_w));
        for (std::int64_t c = 0; c < op.in_channels; ++c)
            for (std::int64_t r = 0; r < op.kernel_h; ++r) {
                const std::int64_t h = p * op.stride_h - op.pad_h + r;
                if (h < 0 || h >= op.height) continue;
                read_row(x, (image * op.in_channels + c) * op.height + h, 0, op.width, line.data());
                read_row(weight, (filter * op.in_channels + c) * op.kernel_h + r, 0, op.kernel_w, taps.data());
                for (std::size_t i = first; i < last; ++i) {
                    const std::int64_t begin = elements[i].column * op.stride_w - op.pad_w;
                    const std::int64_t from = std::max<std::int64_t>(0, -begin);
                    const std::int64_t count = std::min(op.kernel_w, op.width - begin) - from;
                    if (count <= 0) continue;
                    const Dot part = dot(line.data() + begin + from, taps.data() + from, count);
                    Dot& sum = sums[i - first];
                    sum = {sum.value + part.value, sum.magnitude + part.magnitude, sum.squares + part.squares};
                }
            }
        for (std::size_t i = first; i < last; ++i) {
            const Dot& sum = sums[i - first];
            const double shift = bias ? at(bias, filter) : 0.0;
            expected[i] = {sum.value + shift, sum.magnitude + std::abs(shift), op.taps() + (bias ? 1 : 0)};
            expected[i].inputs = std::sqrt(sum.squares);
        }
    });
    return expected;
}

std::vector<Expected> conv2d_dgrad(const Conv2d& op, View dy, View weight, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    // At most every stride-th tap of each dimension meets an element of x.
    const auto met = [](std::int64_t taps, std::int64_t stride) { return (taps + stride - 1) / stride; };
    const std::int64_t terms = op.out_channels * met(op.kernel_h, op.stride_h) * met(op.kernel_w, op.stride_w);
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t h = elements[first].row % op.height;
        const std::int64_t channel = elements[first].row / op.height % op.in_channels;
        const std::int64_t image = elements[first].row / op.height / op.in_channels;
        std::vector<Dot> sums(last - first);
        std::vector<double> line(static_cast<std::size_t>(op.out_width())), taps(static_cast<std::size_t>(op.kernel_w));
        for (std::int64_t k = 0; k < op.out_channels; ++k)
            for (std::int64_t r = 0; r < op.kernel_h; ++r) {
                const std::int64_t below = h + op.pad_h - r, p = below / op.stride_h;
                if (below < 0 || below % op.stride_h != 0 || p >= op.out_height()) continue;
                read_row(dy, (image * op.out_channels + k) * op.out_height() + p, 0, op.out_width(), line.data());
                read_row(weight, (k * op.in_channels + channel) * op.kernel_h + r, 0, op.kernel_w, taps.data());
                for (std::size_t i = first; i < last; ++i)
                    for (std::int64_t s = 0; s < op.kernel_w; ++s) {
                        const std::int64_t behind = elements[i].column + op.pad_w - s, q = behind / op.stride_w;
                        if (behind < 0 || behind % op.stride_w != 0 || q >= op.out_width()) continue;
                        const double product = line[static_cast<std::size_t>(q)] * taps[static_cast<std::size_t>(s)];
                        Dot& sum = sums[i - first];
                        sum = {sum.value + product, sum.magnitude + std::abs(product), sum.squares + product * product};
                    }
            }
        for (std::size_t i = first; i < last; ++i) {
            const Dot& sum = sums[i - first];
            expected[i] = {sum.value, sum.magnitude, terms};
            expected[i].inputs = std::sqrt(sum.squares);
        }
    });
    return expected;
}

std::vector<Expected> conv2d_dw(const Conv2d& op, View x, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    // Elements of a row of taps share the rows of x and dy.
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t r = elements[first].row % op.kernel_h;
        const std::int64_t channel = elements[first].row / op.kernel_h % op.in_channels;
        const std::int64_t filter = elements[first].row / op.kernel_h / op.in_channels;
        std::vector<Dot> sums(last - first);
        const auto positions = static_cast<std::size_t>(op.out_width());
        std::vector<double> line(static_cast<std::size_t>(op.width)), met(positions), gradient(positions);
        for (std::int64_t image = 0; image < op.batch; ++image)
            for (std::int64_t p = 0; p < op.out_height(); ++p) {
                const std::int64_t h = p * op.stride_h - op.pad_h + r;
                if (h < 0 || h >= op.height) continue;
                read_row(x, (image * op.in_channels + channel) * op.height + h, 0, op.width, line.data());
                read_row(dy, (image * op.out_channels + filter) * op.out_height() + p, 0, op.out_width(),
                         gradient.data());
                for (std::size_t i = first; i < last; ++i) {
                    for (std::int64_t q = 0; q < op.out_width(); ++q) {
                        const std::int64_t w = q * op.stride_w - op.pad_w + elements[i].column;
                        met[static_cast<std::size_t>(q)] =
                            w >= 0 && w < op.width ? line[static_cast<std::size_t>(w)] : 0.0;
                    }
                    const Dot part = dot(met.data(), gradient.data(), op.out_width());
                    Dot& sum = sums[i - first];
                    sum = {sum.value + part.value, sum.magnitude + part.magnitude, sum.squares + part.squares};
                }
            }
        for (std::size_t i = first; i < last; ++i) {
            const Dot& sum = sums[i - first];
            expected[i] = {sum.value, sum.magnitude, op.batch * op.out_height() * op.out_width()};
            expected[i].inputs = std::sqrt(sum.squares);
        }
    });
    return expected;
}

std::vector<Expected> conv2d_db(const Conv2d& op, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size(), {0, 0, op.batch * op.out_height() * op.out_width()});
    std::vector<double> line(static_cast<std::size_t>(op.out_width()));
    for (std::size_t i = 0; i < elements.size(); ++i) {
        double squares = 0;
        for (std::int64_t image = 0; image < op.batch; ++image)
            for (std::int64_t p = 0; p < op.out_height(); ++p) {
                const std::int64_t row = (image * op.out_channels + elements[i].column) * op.out_height() + p;
                read_row(dy, row, 0, op.out_width(), line.data());
                for (const double gradient : line) {
                    expected[i].value += gradient;
                    expected[i].magnitude += std::abs(gradient);
                    squares += gradient * gradient;
                }
            }
        expected[i].inputs = std::sqrt(squares);  // it may be computed as a product with ones
    }
    return expected;
}

static std::vector<Expected> expected_wgrad(const Conv2d& op, Question q) {
    const View x = q.next(), dy = q.next();
    if (q.asks_for_next()) {
        const std::vector<Expected> dw = conv2d_dw(op, x, dy, q.elements);
        return op.accumulates ? products_added_to(q.next(), q.elements, dw) : dw;
    }
    q.next();
    const std::vector<Expected> db = conv2d_db(op, dy, q.elements);
    return op.accumulates ? added_to(q.next(), q.elements, db) : db;
}

std::vector<Expected> expected(const Conv2d& op, Question q) {
    if (q.step.direction == Direction::wgrad) return expected_wgrad(op, q);
    if (q.step.direction == Direction::dgrad) {
        const View dy = q.next();
        return conv2d_dgrad(op, dy, q.next(), q.elements);
    }
    const View x = q.next(), weight = q.next(), bias = q.next_if(op.bias);
    std::vector<Expected> sums = conv2d(op, x, weight, bias, q.elements);
    for (std::size_t i = q.step.head + 1; i < q.step.ops.size(); ++i) {
        if (const auto* mask = q.step.ops[i].get_if<TimeMask>())
            sums = masked(*mask, std::move(sums), q.next(), q.elements);
        if (const auto* norm = q.step.ops[i].get_if<BatchNorm>()) {
            const View scale = q.next(), shift = q.next(), mean = q.next(), variance = q.next();
            sums = normalised(*norm, std::move(sums), scale, shift, mean, variance, q.elements);
        }
        if (const auto* clip = q.step.ops[i].get_if<Hardtanh>())  // it never moves two numbers further apart
            for (Expected& sum : sums) sum.value = std::clamp(sum.value, clip->low, clip->high);
    }
    return sums;
}
/// Elements of a row share the decoding of what they read, so that a group of them costs little more than one.
ElementCost cost(const Conv2d& op, Direction direction) {
    if (direction == Direction::dgrad)
        return {static_cast<double>(op.out_channels * op.kernel_h * op.kernel_w) / static_cast<double>(op.stride_h),
                16};
    if (direction == Direction::wgrad)
        return {static_cast<double>(op.batch * op.out_height() * op.out_width()), op.kernel_w};
    return {static_cast<double>(op.taps()), 16};
}

}  // namespace kbench::reference
