// Batch normalisation: in evaluation (with running statistics), in training, and its backward.
#pragma once

#include "kbench/error.h"
#include "kbench/op.h"

namespace kbench {

/// y = (x - running_mean) / sqrt(running_var + epsilon) * weight + bias, each of the four by channel (Ioffe and
/// Szegedy, "Batch Normalization", ICML 2015, algorithm 2, steps 10 and 11). in: x [rows, width], weight, bias,
/// running_mean, running_var [channel_count()]; out: y [rows, width]. With `channels` 0 each column is a channel. Else
/// x is NCHW: row r belongs to channel r / height % channels.
/// With `training` (algorithm 1) it uses the mean and the biased variance of each channel's count() elements instead,
/// and rstd = 1 / sqrt(variance + epsilon). Running statistics move in place by momentum times the difference; theirs
/// is the unbiased variance (PyTorch's BatchNorm). out: running_mean, running_var (in place), mean, rstd
/// [channel_count()], fp32 or wider, y.
/// bwd of training: with n = (x - mean) rstd, dx = weight rstd (dy - mean(dy) - n mean(dy n)), means over the channel;
/// dw = sum of dy n, db = sum of dy. in: x, dy, weight, mean, rstd; out: dx [rows, width], dw, db [channel_count()].
/// `accumulates`: the sums are added in place to what dw and db hold.
struct BatchNorm {
    static constexpr std::string_view kind = "batchnorm", what = "batch normalisation";
    static constexpr std::string_view example = "r4000w1024[c32h81][t][a][+residual]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    std::int64_t channels = 0, height = 1;
    double epsilon = 1e-5, momentum = 0.1;
    bool training = false, accumulates = false;
    bool operator==(const BatchNorm&) const = default;

    std::int64_t channel_count() const { return channels > 0 ? channels : width; }
    /// Elements per channel.
    std::int64_t count() const { return rows * width / channel_count(); }

    static BatchNorm parse(ShapeText& shape) {
        BatchNorm op = on(shape.size('r'), shape.size('w'));
        op.channels = shape.size_or('c', 0);
        op.height = shape.size_or('h', 1);
        op.training = shape.flag('t');
        op.accumulates = shape.flag('a');
        if (op.channels == 0 ? op.height != 1 : op.rows % (op.channels * op.height) != 0) throw ShapeText::Wrong();
        if (op.training && op.count() < 2)
            throw UsageError("batchnorm in training with 1 element of a channel: must be 2 or more, for a variance");
        return op;
    }
    static BatchNorm on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const {
        std::string text = shape_text({{'r', rows}, {'w', width}});
        if (channels > 0) text += shape_text({{'c', channels}, {'h', height}});
        return text + (training ? "t" : "") + (accumulates ? "a" : "");
    }
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec variance = weight("running_var", channel_count());
        variance.contents = Contents::normal(0.1, 1);  // ten deviations from 0
        const auto statistic = [&](std::string_view name, OperandUse use, const Contents& contents) {
            return OperandSpec{.name = name,
                               .use = use,
                               .columns = channel_count(),
                               .element = ElementType::at_least_fp32,
                               .contents = contents};
        };
        if (direction == Direction::bwd) {
            OperandSpec dw = output("dw", 1, channel_count()), db = output("db", 1, channel_count());
            if (accumulates) dw.use = db.use = OperandUse::in_place;
            return {input("x", rows, width),
                    input("dy", rows, width),
                    weight("weight", channel_count()),
                    statistic("mean", OperandUse::input, Contents::normal(0.1)),
                    statistic("rstd", OperandUse::input, Contents::normal(0.1, 1)),
                    output("dx", rows, width),
                    dw,
                    db};
        }
        std::vector<OperandSpec> specs{input("x", rows, width), weight("weight", channel_count()),
                                       weight("bias", channel_count()), weight("running_mean", channel_count()),
                                       variance};
        if (training) {
            specs[3].use = specs[4].use = OperandUse::in_place;
            specs.push_back(statistic("mean", OperandUse::output, {}));
            specs.push_back(statistic("rstd", OperandUse::output, {}));
        }
        specs.push_back(output("out", rows, width));
        return specs;
    }
    static Gradients gradients() {
        return {{{Direction::bwd, {"x", "dout", "weight", "mean", "rstd", "dx", "dweight", "dbias"}}}};
    }
    BatchNorm in_training() const {
        if (count() < 2)
            throw UsageError("batch normalisation in training needs 2 elements of a channel or more, for a variance");
        BatchNorm op = *this;
        op.training = true;
        return op;
    }
    BatchNorm accumulating() const {
        BatchNorm op = *this;
        op.accumulates = true;
        return op;
    }
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction == Direction::bwd) return {};
        return {{.before = {"residual"}}};
    }
    Grown<BatchNorm> grown(Direction, Scale factor) const {
        BatchNorm op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per element: minus the mean, times weight over root, plus bias. Per channel: plus epsilon, root, quotient.
    /// Training adds, per element: add to the mean, subtract it, square, add; per channel: two quotients, three each
    /// for the two running statistics. Backward, per element: n in two; times dy, and two additions to the channel's
    /// sums; dy less its mean, less n times the other, times weight rstd: four. Per channel: two quotients, weight by
    /// rstd.
    Work work(Direction direction) const {
        const double elements = static_cast<double>(rows) * static_cast<double>(width);
        const auto of_channels = static_cast<double>(channel_count());
        if (direction == Direction::bwd) return {9 * elements + 3 * of_channels};
        return {(training ? 7 : 3) * elements + (training ? 11 : 3) * of_channels};
    }
};

}  // namespace kbench
