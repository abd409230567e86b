// What cuDNN's recurrent layers are held against: the reference's gradients, each against finite differences of its
// forward. Needs neither a device nor cuDNN.
#include "tests/peers/recurrent_layer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace kbench::cudnn {
namespace {

/// In fp64, where differences can be that small.
class RecurrentLayerReference : public testing::TestWithParam<Cell> {
  protected:
    double loss() const {
        const Parts h = layer_.reference(Direction::fwd);
        const std::vector<double> dy = layer_.dy().wide();
        double sum = 0;
        for (std::size_t i = 0; i < h[0].size(); ++i) sum += h[0][i] * dy[i];
        return sum;
    }
    /// `gradient` is that of the first numbers of `of`.
    void expect_slopes(HostMatrix& of, const std::vector<double>& gradient, const char* what) {
        constexpr double small = 1e-5;
        ASSERT_LE(gradient.size() * sizeof(double), of.data.size()) << what;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            std::byte* const at = of.data.data() + i * sizeof(double);
            double value = 0;
            std::memcpy(&value, at, sizeof value);
            const auto loss_at = [&](double changed) {
                std::memcpy(at, &changed, sizeof changed);
                return loss();
            };
            const double slope = (loss_at(value + small) - loss_at(value - small)) / (2 * small);
            std::memcpy(at, &value, sizeof value);
            EXPECT_NEAR(gradient[i], slope, 1e-7) << what << " " << i;
        }
    }
    RecurrentLayer layer_{
        {.cell = GetParam(), .precision = Precision::fp64, .hidden = 3, .batch = 2, .steps = 4, .input = 2}};
};

TEST_P(RecurrentLayerReference, ItsGradientOfTheInputIsTheSlopeOfTheLoss) {
    const Parts dx = layer_.reference(Direction::bwd);
    ASSERT_EQ(dx.size(), 1u);
    ASSERT_EQ(dx[0].size(), 4u * 2 * 2);
    expect_slopes(layer_.x, dx[0], "x");
}

TEST_P(RecurrentLayerReference, ItsGradientsOfTheWeightsAreSlopesOfTheLoss) {
    const Parts gradients = layer_.reference(Direction::wgrad);
    ASSERT_EQ(gradients.size(), 8u);
    for (std::size_t d = 0; d < 2; ++d) {
        RecurrentLayer::Weights& of = layer_.weights[d];
        const std::pair<HostMatrix*, const char*> parts[] = {
            {&of.ih, "weight_ih"}, {&of.hh, "weight_hh"}, {&of.bias_ih, "bias_ih"}, {&of.bias_hh, "bias_hh"}};
        for (std::size_t part = 0; part < std::size(parts); ++part) {
            const auto& [matrix, name] = parts[part];
            ASSERT_EQ(gradients[4 * d + part].size() * sizeof(double), matrix->data.size()) << name;
            expect_slopes(*matrix, gradients[4 * d + part], name);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Cells, RecurrentLayerReference, testing::Values(Cell::lstm, Cell::gru, Cell::rnn));

TEST(RecurrentParts, TheWorstPartCounts) {
    const Parts right = {{3, 4}, {0, 1}};
    EXPECT_EQ(largest_error(right, right), 0);
    EXPECT_DOUBLE_EQ(largest_error({{3, 4.5}, {0, 1}}, right), 0.1);
    EXPECT_DOUBLE_EQ(largest_error({{3, 4.5}, {0, 0.5}}, right), 0.5);
    EXPECT_EQ(largest_error({{3, 4}, {0, std::numeric_limits<double>::quiet_NaN()}}, right),
              std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace kbench::cudnn
