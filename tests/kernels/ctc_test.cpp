// Connectionist temporal classification against the reference.
#include "kernels/ctc.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::int32_t* integers(const DeviceMatrix& matrix) { return static_cast<const std::int32_t*>(matrix.data()); }

/// What the op reads besides logits: sequences and targets of many lengths, among the labels many equal neighbours.
struct Labelled {
    HostMatrix lengths, targets, target_lengths, scale;

    Labelled(const Ctc& op, DataType wide, bool full)
        : lengths(DataType::int32, op.batch, 1),
          targets(DataType::int32, op.batch, op.target),
          target_lengths(DataType::int32, op.batch, 1),
          scale(wide, 1, 1) {
        std::mt19937 generator(5);
        const std::int64_t frames = op.steps * op.frames_per_step;
        for (std::int64_t n = 0; n < op.batch; ++n) {
            lengths.set(n, 0, static_cast<double>(full || n % 3 == 0 ? frames : frames * (n % 7 + 1) / 8));
            target_lengths.set(n, 0, static_cast<double>(full || n % 4 == 0 ? op.target : op.target * (n % 5) / 5));
            double label = 1;
            for (std::int64_t i = 0; i < op.target; ++i) {
                if (i == 0 || generator() % 3 != 0)
                    label = 1 + static_cast<double>(generator() % static_cast<unsigned>(op.labels - 1));
                targets.set(n, i, label);
            }
        }
        scale.set(0, 0, 64);
    }
};

class CtcOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    DataType type = GetParam(), wide = type == DataType::fp64 ? type : DataType::fp32;

    struct Made {
        HostMatrix losses, gradient, losses_of_forward;
    };

    Made run(const Ctc& op, const HostMatrix& logits, const Labelled& in, std::int64_t offset = 0) const {
        const DeviceMatrix device_logits(logits, offset), lengths(in.lengths), targets(in.targets),
            target_lengths(in.target_lengths), scale(in.scale);
        const auto losses = DeviceMatrix::poisoned(wide, 1, op.batch),
                   of_forward = DeviceMatrix::poisoned(wide, 1, op.batch);
        const auto memory_of = [](std::size_t bytes) {
            return DeviceMatrix::poisoned(DataType::fp32, 1, static_cast<std::int64_t>((bytes + 3) / 4));
        };
        const DeviceMatrix small = memory_of(cuda::ctc_forward_workspace_bytes(type, op)),
                           large = memory_of(cuda::ctc_gradient_workspace_bytes(type, op));
        cuda::ctc_forward(type, op, logits.stride, device_logits.data(), integers(lengths), integers(targets),
                          integers(target_lengths), of_forward.data(), small.data(), nullptr);
        small.download();  // checks what lies around it
        EXPECT_EQ(device_logits.download().bytes, logits.bytes) << "forward writes no logits";
        cuda::ctc_gradient(type, op, logits.stride, device_logits.data(), integers(lengths), integers(targets),
                           integers(target_lengths), scale.data(), losses.data(), large.data(), nullptr);
        large.download();
        return {losses.download(), device_logits.download(), of_forward.download()};
    }

    void check(const Ctc& op, bool full = false, double deviation = 1, std::int64_t padding = 0,
               std::int64_t offset = 0) const {
        SCOPED_TRACE(testing::Message() << op.text() << " full " << full << " deviation " << deviation << " padding "
                                        << padding << " offset " << offset);
        const std::int64_t rows = op.steps * op.batch, stride = op.labels + padding;
        const auto logits = HostMatrix::normal(type, rows, op.labels, 1, deviation, 0, stride);
        const Labelled in(op, wide, full);
        const Made made = run(op, logits, in, offset);
        const auto each = elements_of(1, op.batch), some = elements_of(rows, op.labels);
        const reference::View fwd[] = {
            logits.view(), in.lengths.view(), in.targets.view(), in.target_lengths.view(), {}};
        const reference::View bwd[] = {
            logits.view(), in.lengths.view(), in.targets.view(), in.target_lengths.view(), in.scale.view(), {}};
        EXPECT_EQ(made.losses.bytes, made.losses_of_forward.bytes);
        expect_agrees(made.losses, each, reference::evaluate(Step::of(op), 4, fwd, each), precision_of(type));
        expect_agrees(made.gradient, some, reference::evaluate(Step::of(op, Direction::bwd), 0, bwd, some),
                      precision_of(type));
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t column = op.labels; column < stride; ++column)
                ASSERT_EQ(made.gradient(row, column), 0) << row << ", " << column;
    }
};

TEST_P(CtcOnDevice, AnyNumberOfStepsLabelsAndTargets) {
    KBENCH_NEEDS_DEVICE();
    const Ctc ops[] = {{1, 3, 2, 1},       {2, 1, 2, 1},        {3, 2, 3, 2},     {4, 5, 3, 3},    {5, 8, 3, 3, 2},
                       {40, 9, 29, 15, 2}, {65, 9, 29, 31, 3},  {66, 6, 29, 32},  {99, 6, 5, 33},  {130, 5, 29, 63},
                       {131, 5, 33, 64},   {200, 3, 1000, 100}, {70, 3, 5003, 9}, {64, 40, 29, 20}};
    for (const Ctc& op : ops)
        for (const double deviation : {1.0, 8.0}) check(op, false, deviation);
}

TEST_P(CtcOnDevice, AlsoPaddedAndUnaligned) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t offset : {0, 1, 3})
        for (const std::int64_t padding : {1, 3, 70}) check({40, 9, 29, 15, 2}, false, 1, padding, offset);
}

TEST_P(CtcOnDevice, AtTheSizeOfAModel) {
    KBENCH_NEEDS_DEVICE();
    check({500, 32, 29, 150}, true);
    check({500, 32, 29, 150, 2}, false, 4);
    check({1500, 4, 29, 400}, true, 2);
}

TEST_P(CtcOnDevice, TargetsThatFillABlockAndSuchThatDoNotFit) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t target : {1000, 1023, 1024, 1500}) {
        check({1700, 2, 29, target}, false);
        check({target + target / 2 + 100, 1, 200, target}, true);
    }
    check({4500, 1, 300, 3100}, true);  // shares do not fit into shared memory
    check({3, 4, 29, 1100});
}

TEST_P(CtcOnDevice, NothingToAlign) {
    KBENCH_NEEDS_DEVICE();
    const Ctc op{5, 8, 3, 3, 2};
    Labelled in(op, wide, true);
    const double lengths[] = {10, 10, 7, 0, 0, 10, 6, -3}, counts[] = {3, 3, 2, 0, 1, 0, 3, 3};
    const double targets[8][3] = {{1, 2, 1}, {1, 1, 2}, {2, 2, 0}, {0, 0, 0},
                                  {1, 0, 0}, {0, 0, 0}, {2, 2, 2}, {1, 1, 1}};
    for (std::int64_t n = 0; n < 8; ++n) {
        in.lengths.set(n, 0, lengths[n]);
        in.target_lengths.set(n, 0, counts[n]);
        for (std::int64_t i = 0; i < 3; ++i) in.targets.set(n, i, targets[n][i]);
    }
    const auto logits = HostMatrix::normal(type, 40, 3, 1);
    const Made made = run(op, logits, in);
    const reference::View views[] = {
        logits.view(), in.lengths.view(), in.targets.view(), in.target_lengths.view(), in.scale.view(), {}};
    const Step step = Step::of(op, Direction::bwd);
    const auto each = elements_of(1, 8), all = elements_of(40, 3);
    expect_agrees(made.losses, each, reference::evaluate(step, 5, views, each), precision_of(type));
    expect_agrees(made.gradient, all, reference::evaluate(step, 0, views, all), precision_of(type));
    EXPECT_EQ(made.losses(0, 3), 0);
    for (const std::int64_t n : {4, 6, 7}) {
        EXPECT_EQ(made.losses(0, n), infinity) << n;
        for (std::int64_t t = 0; t < 5; ++t) EXPECT_EQ(made.gradient(t * 8 + n, 0), 0);
    }
}

TEST_P(CtcOnDevice, TwoRunsHaveTheSameBits) {
    KBENCH_NEEDS_DEVICE();
    for (const Ctc& op : {Ctc{300, 16, 29, 100}, Ctc{1300, 2, 29, 1100}}) {
        const auto logits = HostMatrix::normal(type, op.steps * op.batch, op.labels, 1, 3);
        const Labelled in(op, wide, false);
        const Made first = run(op, logits, in), second = run(op, logits, in);
        EXPECT_EQ(first.losses.bytes, second.losses.bytes);
        EXPECT_EQ(first.gradient.bytes, second.gradient.bytes);
    }
}

TEST_P(CtcOnDevice, WhatLiesBehindTheEndIsNotReadAndNansBeforeItShow) {
    KBENCH_NEEDS_DEVICE();
    const Ctc op{6, 2, 4, 2};
    Labelled in(op, wide, true);
    in.lengths.set(0, 0, 4);
    auto logits = HostMatrix::normal(type, 12, 4, 1);
    for (std::int64_t label = 0; label < 4; ++label)
        for (const std::int64_t row : {8, 10}) logits.set(row, label, std::numeric_limits<double>::quiet_NaN());
    logits.set(5, 3, std::numeric_limits<double>::quiet_NaN());
    const Made made = run(op, logits, in);
    EXPECT_TRUE(std::isfinite(made.losses(0, 0)));
    EXPECT_TRUE(std::isnan(made.losses(0, 1)));
    EXPECT_TRUE(std::isnan(made.gradient(1, 0)));
    for (const std::int64_t row : {8, 10}) EXPECT_EQ(made.gradient(row, 1), 0);
}

TEST_P(CtcOnDevice, MaskedLogitsHaveNoShare) {
    KBENCH_NEEDS_DEVICE();
    const Ctc op{6, 2, 4, 2};
    Labelled in(op, wide, true);
    const double targets[] = {1, 2, 1, 3};
    for (std::int64_t i = 0; i < 4; ++i) in.targets.set(i / 2, i % 2, targets[i]);
    auto logits = HostMatrix::normal(type, 12, 4, 1);
    for (std::int64_t row = 0; row < 12; ++row) logits.set(row, 3, -infinity);
    const Made made = run(op, logits, in);
    EXPECT_TRUE(std::isfinite(made.losses(0, 0)));
    EXPECT_EQ(made.losses(0, 1), infinity);
    for (std::int64_t row = 0; row < 12; ++row) {
        EXPECT_EQ(made.gradient(row, 3), 0);
        EXPECT_EQ(made.gradient(row, 0) == 0, row % 2 == 1) << row;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, CtcOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
