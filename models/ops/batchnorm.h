// Batch normalisation in evaluation, with the statistics that training left behind.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = (x - running_mean) / sqrt(running_var + epsilon) * weight + bias, each of the four by channel (Ioffe and
/// Szegedy, "Batch Normalization", ICML 2015, algorithm 2, steps 10 and 11). in: x [rows, width], weight, bias,
/// running_mean, running_var [channel_count()]; out: y [rows, width]. A column is a channel where `channels` is 0. Else
/// x is NCHW: row r is of channel r / height % channels.
struct BatchNorm {
    static constexpr std::string_view kind = "batchnorm", what = "batch normalisation with running statistics";
    static constexpr std::string_view example = "r4000w1024[c32h81][+residual]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    std::int64_t channels = 0, height = 1;
    double epsilon = 1e-5;
    bool operator==(const BatchNorm&) const = default;

    std::int64_t channel_count() const { return channels > 0 ? channels : width; }

    static BatchNorm parse(ShapeText& shape) {
        BatchNorm op = on(shape.size('r'), shape.size('w'));
        op.channels = shape.size_or('c', 0);
        op.height = shape.size_or('h', 1);
        if (op.channels == 0 ? op.height != 1 : op.rows % (op.channels * op.height) != 0) throw ShapeText::Wrong();
        return op;
    }
    static BatchNorm on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const {
        std::string text = shape_text({{'r', rows}, {'w', width}});
        if (channels > 0) text += shape_text({{'c', channels}, {'h', height}});
        return text;
    }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec variance = weight("running_var", channel_count());
        variance.contents = Contents::normal(0.1, 1);  // ten deviations from 0
        return {input("x", rows, width),
                weight("weight", channel_count()),
                weight("bias", channel_count()),
                weight("running_mean", channel_count()),
                variance,
                output("out", rows, width)};
    }
    static std::vector<Fusion> fusions(Direction) { return {{.before = {"residual"}}}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// An element: minus the mean, times weight over root, plus bias. A channel: plus epsilon, root, quotient.
    Work work(Direction) const {
        return {3 * static_cast<double>(rows) * static_cast<double>(width) + 3 * static_cast<double>(channel_count())};
    }
};

}  // namespace kbench
