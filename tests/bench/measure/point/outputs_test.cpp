// Differences between forwards are seen to the bit, and padding is nobody's business.
#include "bench/measure/point/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "bench/plan/data/inputs.h"
#include "bench/plan/data/weights.h"
#include "bench/plan/device_support.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

constexpr std::int64_t rows = 5, columns = 7, stride = 8;

OutputRows make(void (*change)(float* values) = nullptr) {
    std::vector<float> values(static_cast<std::size_t>(rows * stride));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i);
    if (change != nullptr) change(values.data());
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return {"logits", Operand{"out", OperandUse::output, DataType::fp32, rows, columns, stride, rows, {}},
            std::move(bytes)};
}

TEST(OutputRows, EqualForwardsDoNotDiffer) { EXPECT_EQ(make().difference(make()), ""); }

TEST(OutputRows, NamesHowManyDifferByHowMuchAndWhereFirst) {
    const OutputRows other = make([](float* values) {
        values[2 * stride + 3] += 0.5f;
        values[4 * stride + 6] -= 2.0f;
    });
    EXPECT_EQ(make().difference(other),
              "2 of 35 logits differ between runs of the same input, by up to 2, first at row 2");
}

TEST(OutputRows, PaddingMayDiffer) {
    EXPECT_EQ(make().difference(make([](float* values) { values[columns] = 99; })), "");
}

TEST(OutputRows, SayWhichRowsWereCompared) {
    const Operand every_tenth{"out", OperandUse::output, DataType::fp32, 3, 1, 1, 3, {}};
    const auto of = [&](std::array<float, 3> values) {
        std::vector<std::byte> bytes(sizeof values);
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return OutputRows("logits", every_tenth, std::move(bytes), 10);
    };
    EXPECT_EQ(
        of({1, 2, 3}).difference(of({1, 2, 4})),
        "1 of 3 logits (one row of 10 was compared) differ between runs of the same input, by up to 1, first at row 20");
}

/// A small GPT-2's plan after a forward, on a device whose memory the host cannot see.
class OutputsOnDevice : public testing::Test {
  protected:
    OutputsOnDevice() {
        device_.apart = true;
        model_ = std::make_unique<Model>(make_gpt2(small_config(), 2, 33, AttentionKind::fused));
        plan_.emplace(
            *model_, Precision::fp32,
            assign_steps(*model_, Precision::fp32, providers_, {}, column_multiple(device_, Precision::fp32)));
        RandomWeights weights(1);
        plan_->allocate(device_, weights);
        for (const TensorId id : model_->inputs)
            plan_->set_input(id, input_bytes(model_->tensors[id], plan_->operand(id), "", 1));
        for (std::size_t step = 0; step < plan_->steps().size(); ++step) plan_->run_step(step, nullptr);
    }
    TensorId logits() const { return model_->outputs.at(0); }
    float* element(std::int64_t row, std::int64_t column) {
        return static_cast<float*>(plan_->address(logits())) + row * plan_->operand(logits()).stride + column;
    }

    OtherDevice device_;
    Providers providers_ = make_providers(BackendKind::cpu, {});
    std::unique_ptr<Model> model_;
    std::optional<Plan> plan_;
};

TEST_F(OutputsOnDevice, AreCountedInEveryRow) {
    EXPECT_EQ(count_not_finite(*plan_, logits(), device_), 0);
    *element(65, 516) = std::numeric_limits<float>::infinity();
    *element(0, 0) = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(count_not_finite(*plan_, logits(), device_), 2);
}

TEST_F(OutputsOnDevice, AreKeptInEvenlySpacedRowsWhereAllAreTooMany) {
    const Operand& all = plan_->operand(logits());
    ASSERT_EQ(all.rows, 66);
    const std::int64_t row_bytes = all.stride * 4;
    const OutputRows whole = OutputRows::download(*plan_, logits(), device_, all.bytes());
    EXPECT_EQ(whole.count(), 66 * all.columns);
    const OutputRows some = OutputRows::download(*plan_, logits(), device_, 30 * row_bytes);  // every third row
    EXPECT_EQ(some.operand().rows, 22);
    for (std::int64_t row = 0; row < 22; ++row)
        EXPECT_EQ(std::memcmp(static_cast<const std::byte*>(some.data()) + row * row_bytes, element(3 * row, 0),
                              static_cast<std::size_t>(row_bytes)),
                  0)
            << row;
    *element(4, 1) += 1;  // not among the rows
    EXPECT_EQ(some.difference(OutputRows::download(*plan_, logits(), device_, 30 * row_bytes)), "");
    *element(6, 1) += 1;
    EXPECT_THAT(some.difference(OutputRows::download(*plan_, logits(), device_, 30 * row_bytes)),
                testing::HasSubstr("first at row 6"));
}

}  // namespace
}  // namespace kbench
