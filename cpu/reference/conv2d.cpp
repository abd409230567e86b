// Reference of the convolution: the sum over taps, as it is defined.
#include <algorithm>

#include "cpu/reference/rows.h"
#include "kbench/error.h"

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

std::vector<Expected> expected(const Conv2d& op, Question q) {
    if (q.step.direction != Direction::fwd) throw Unsupported("conv2d's gradients have no reference yet");
    const View x = q.next(), weight = q.next(), bias = q.next_if(op.bias);
    std::vector<Expected> sums = conv2d(op, x, weight, bias, q.elements);
    for (std::size_t i = q.step.head + 1; i < q.step.ops.size(); ++i) {
        if (const auto* mask = q.step.ops[i].get_if<TimeMask>())
            sums = masked(*mask, std::move(sums), q.next(), q.elements);
        if (const auto* norm = q.step.ops[i].get_if<BatchNorm>()) {
            const View scale = q.next(), shift = q.next(), mean = q.next(), variance = q.next();
            sums = normalised(*norm, std::move(sums), scale, shift, mean, variance, q.elements);
        }
        if (const auto* clip = q.step.ops[i].get_if<Hardtanh>())  // moves no two numbers further apart
            for (Expected& sum : sums) sum.value = std::clamp(sum.value, clip->low, clip->high);
    }
    return sums;
}
/// Elements of a row share the decoding of what they read; a group of them costs little more than one.
ElementCost cost(const Conv2d& op) { return {static_cast<double>(op.taps()), 16}; }

}  // namespace kbench::reference
