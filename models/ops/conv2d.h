// The two-dimensional convolution of neural networks, and its two gradients.
#pragma once

#include <cmath>

#include "kbench/op.h"

namespace kbench {

/// fwd: y[n, k, p, q] = bias[k] + sum over c, r, s of x[n, c, p stride_h - pad_h + r, q stride_w - pad_w + s]
/// w[k, c, r, s], where x is 0 outside its height and width. This is a cross-correlation, which the field calls
/// convolution (Goodfellow et al., Deep Learning, 2016, eq. 9.6). p < out_height() and q < out_width().
/// in: x [batch * in_channels * height, width] (NCHW), weight [out_channels * in_channels * kernel_h, kernel_w] (KCRS),
/// and bias [out_channels] when `bias`; out: [batch * out_channels * out_height, out_width].
/// dgrad: dx[n, c, h, w] = sum of dy[n, k, p, q] w[k, c, r, s] over all k, p, q, r, s whose term in y has that x.
/// in: dy as y, weight; out: dx as x.
/// wgrad: dw[k, c, r, s] = sum over n, p, q of dy[n, k, p, q] x[n, c, p stride_h - pad_h + r, q stride_w - pad_w + s],
/// and with `bias` db[k] = sum over n, p, q of dy[n, k, p, q]. in: x, dy; out: dw as weight, db [out_channels].
/// `accumulates`: the sums are added in place to what dw and db hold.
/// Letters of a shape: n, c, h, w of x; k filters of r x s; strides u, v (1 if missing); padding p, q (0 if missing);
/// b for a bias; a for `accumulates`.
struct Conv2d {
    static constexpr std::string_view kind = "conv2d", what = "two-dimensional convolution";
    static constexpr std::string_view example = "n8c32h81w500k32r21s11[u2][v1][p10][q5][b][a]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::dgrad, Direction::wgrad};

    std::int64_t batch, in_channels, height, width, out_channels, kernel_h, kernel_w;
    std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
    bool bias = false, accumulates = false;
    bool operator==(const Conv2d&) const = default;

    std::int64_t out_height() const { return (height + 2 * pad_h - kernel_h) / stride_h + 1; }
    std::int64_t out_width() const { return (width + 2 * pad_w - kernel_w) / stride_w + 1; }
    /// Products per element of y, those with padding included.
    std::int64_t taps() const { return in_channels * kernel_h * kernel_w; }

    static Conv2d parse(ShapeText& shape) {
        Conv2d op{shape.size('n'), shape.size('c'), shape.size('h'), shape.size('w'),
                  shape.size('k'), shape.size('r'), shape.size('s')};
        op.stride_h = shape.size_or('u', 1);
        op.stride_w = shape.size_or('v', 1);
        op.pad_h = shape.size_or('p', 0);
        op.pad_w = shape.size_or('q', 0);
        op.bias = shape.flag('b');
        op.accumulates = shape.flag('a');
        const bool fits = op.height + 2 * op.pad_h >= op.kernel_h && op.width + 2 * op.pad_w >= op.kernel_w;
        if (!fits) throw ShapeText::Wrong();
        return op;
    }
    std::string text() const {
        std::string text = shape_text({{'n', batch},
                                       {'c', in_channels},
                                       {'h', height},
                                       {'w', width},
                                       {'k', out_channels},
                                       {'r', kernel_h},
                                       {'s', kernel_w}});
        if (stride_h != 1) text += shape_text({{'u', stride_h}});
        if (stride_w != 1) text += shape_text({{'v', stride_w}});
        if (pad_h != 0) text += shape_text({{'p', pad_h}});
        if (pad_w != 0) text += shape_text({{'q', pad_w}});
        return text + (bias ? "b" : "") + (accumulates ? "a" : "");
    }
    /// Weights are scaled so that outputs stay near 1.
    std::vector<OperandSpec> operands(Direction direction) const {
        const std::int64_t x_rows = batch * in_channels * height, y_rows = batch * out_channels * out_height();
        OperandSpec w = input("weight", out_channels * in_channels * kernel_h, kernel_w);
        w.use = OperandUse::weight;
        w.contents = Contents::normal(1 / std::sqrt(static_cast<double>(taps())));
        if (direction == Direction::dgrad) return {input("dy", y_rows, out_width()), w, output("dx", x_rows, width)};
        std::vector<OperandSpec> specs{input("x", x_rows, width)};
        if (direction == Direction::wgrad) {
            const OperandUse use = accumulates ? OperandUse::in_place : OperandUse::output;
            specs.push_back(input("dy", y_rows, out_width()));
            // Gradients are sums of this many terms; scaling keeps them near 1.
            const auto positions = static_cast<double>(batch * out_height() * out_width());
            specs.back().contents = Contents::normal(1 / std::sqrt(positions));
            specs.push_back({.name = "dw", .use = use, .rows = w.rows, .columns = w.columns});
            if (bias) specs.push_back({.name = "db", .use = use, .columns = out_channels});
            return specs;
        }
        specs.push_back(w);
        if (bias) specs.push_back(weight("bias", out_channels));
        specs.push_back(output("out", y_rows, out_width()));
        return specs;
    }
    static Gradients gradients() {
        return {{{Direction::wgrad, {"x", "dout", "dweight", "dbias"}}, {Direction::dgrad, {"dout", "weight", "dx"}}}};
    }
    Conv2d accumulating() const {
        Conv2d op = *this;
        op.accumulates = true;
        return op;
    }
    Grown<Conv2d> grown(Direction, Scale factor) const {
        Conv2d op = *this;
        op.batch *= factor;
        return {op, "batch"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// Only products with elements of x are useful. An implicit GEMM also multiplies the padding: 2 n k p q c r s in
    /// all.
    Work work(Direction direction) const {
        const auto made = static_cast<double>(batch) * static_cast<double>(out_channels);
        const double positions = static_cast<double>(out_height()) * static_cast<double>(out_width());
        const double all = 2 * made * positions * static_cast<double>(taps());
        const double inside = 2 * made * static_cast<double>(in_channels) *
                              inner_taps(height, out_height(), kernel_h, stride_h, pad_h) *
                              inner_taps(width, out_width(), kernel_w, stride_w, pad_w);
        return {inside + (bias && direction != Direction::dgrad ? made * positions : 0), all, all - inside};
    }
    /// The ops that follow it in evaluation where images are spectrograms of utterances.
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction != Direction::fwd) return {};
        return {{.after = {"time_mask", "batchnorm", "time_mask", "hardtanh", "time_mask"}}};
    }

  private:
    /// Pairs of an output position and a tap, in one dimension, that meet an element of x.
    static double inner_taps(std::int64_t size, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                             std::int64_t pad) {
        double pairs = 0;
        for (std::int64_t at = 0; at < out; ++at) {
            const std::int64_t first = at * stride - pad;
            const std::int64_t begin = std::max<std::int64_t>(0, -first), end = std::min(kernel, size - first);
            pairs += static_cast<double>(std::max<std::int64_t>(0, end - begin));
        }
        return pairs;
    }
};

}  // namespace kbench
