// Products of few rows on the device, against the reference: all numbers of rows, columns and elements that end within
// a tile, every epilogue, and a row of products each of which reads what the one before it makes.
#include <cmath>
#include <optional>

#include "kbench/error.h"
#include "kernels/gemm/gemv.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using cuda::GemvProblem;

struct Epilogue {
    bool bias = false, residual = false;
    std::optional<Activation> activation = std::nullopt;
};

class GemvOnDevice : public ::testing::TestWithParam<Precision> {
  protected:
    static constexpr std::int64_t padding = 8;

    static void check(std::int64_t m, std::int64_t n, std::int64_t k, const Epilogue& epilogue = {}) {
        SCOPED_TRACE(testing::Message() << "m" << m << "n" << n << "k" << k);
        const DataType type = storage_type(GetParam());
        const GemvProblem problem{GetParam(), m, n, k, n + padding, epilogue.activation};
        const auto x = HostMatrix::normal(type, m, k, 1),
                   w = HostMatrix::normal(type, n, k, 2, 1 / std::sqrt(static_cast<double>(k))),
                   bias = HostMatrix::normal(type, 1, n, 3),
                   residual = HostMatrix::normal(type, m, n, 4, 1, 0, n + padding);
        const DeviceMatrix device_x(x), device_w(w), device_bias(bias);
        const auto run = [&] {
            // In place, as the residual stream is added to.
            auto out = epilogue.residual ? DeviceMatrix(residual) : DeviceMatrix::poisoned(type, m, n, problem.ld_out);
            cuda::gemv(problem, device_x.data(), device_w.data(), epilogue.bias ? device_bias.data() : nullptr,
                       epilogue.residual ? out.data() : nullptr, out.data(), nullptr);
            return out.download();
        };
        const HostMatrix made = run(), again = run();
        EXPECT_EQ(made.bytes, again.bytes);
        for (std::int64_t row = 0; row < m; ++row)
            for (std::int64_t column = n; column < problem.ld_out; ++column) {
                const auto with_padding = [&](const HostMatrix& of) {
                    return reference::View{of.bytes.data(), type, m, problem.ld_out, problem.ld_out}(row, column);
                };
                const double there = with_padding(made);
                ASSERT_TRUE(epilogue.residual ? there == with_padding(residual) : std::isnan(there))
                    << "padding of row " << row << " was written";
            }
        const auto elements = elements_of(m, n, 3000);
        expect_agrees(
            made, elements,
            reference::gemm({m, n, k, true}, x.view(), w.view(), epilogue.bias ? bias.view() : reference::View{},
                            epilogue.activation, epilogue.residual ? residual.view() : reference::View{}, elements),
            GetParam());
    }
};

TEST_P(GemvOnDevice, MultipliesAnyNumberOfRows) {
    KBENCH_NEEDS_DEVICE();
    for (std::int64_t m = 1; m <= cuda::gemv_most_rows; ++m) check(m, 1184, 640);
}

TEST_P(GemvOnDevice, TakesSizesThatEndWithinATile) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t m : {1, 3, 9, 16})
        for (const std::int64_t n : {1, 7, 8, 17, 101})
            for (const std::int64_t k : {8, 40, 96, 1288, 5120}) check(m, n, k);
    check(2, 40, 14336);
}

/// Blocks make several tiles each, and finish some before they have made all.
TEST_P(GemvOnDevice, MakesMoreTilesThanThereAreSms) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t m : {1, 8, 16}) {
        check(m, 50257, 64);
        check(m, 5120, 640, {.bias = true, .residual = true});
    }
}

TEST_P(GemvOnDevice, AddsBiasAndResidualAndActivates) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t m : {1, 5, 16}) {
        check(m, 300, 1280, {.bias = true});
        check(m, 300, 1280, {.residual = true});
        check(m, 300, 1280, {.bias = true, .residual = true});
        for (const ActivationFacts& facts : activation_table)
            for (const bool bias : {false, true}) check(m, 100, 640, {.bias = bias, .activation = facts.function});
    }
}

/// Each asks for its weight before the one ahead of it has ended, and must not ask for its x.
TEST_P(GemvOnDevice, WaitsForTheProductBeforeIt) {
    KBENCH_NEEDS_DEVICE();
    constexpr std::int64_t m = 2, width = 1280, products = 60;
    const DataType type = storage_type(GetParam());
    const GemvProblem problem{GetParam(), m, width, width, width, Activation::tanh};
    std::vector<DeviceMatrix> weights, results;
    std::vector<HostMatrix> made;  // few, as random numbers take their time
    for (unsigned i = 0; i < 4; ++i)
        made.push_back(HostMatrix::normal(type, width, width, 100 + i, 1 / std::sqrt(double{width})));
    const auto x = HostMatrix::normal(type, m, width, 1);
    results.emplace_back(x);
    for (unsigned i = 0; i < products; ++i) {
        weights.emplace_back(made[i % made.size()]);
        results.push_back(DeviceMatrix::poisoned(type, m, width));
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
        cuda::gemv(problem, results[i].data(), weights[i].data(), nullptr, nullptr, results[i + 1].data(), nullptr);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto alone = DeviceMatrix::poisoned(type, m, width);
        results[i].download();  // waits
        cuda::gemv(problem, results[i].data(), weights[i].data(), nullptr, nullptr, alone.data(), nullptr);
        ASSERT_EQ(alone.download().bytes, results[i + 1].download().bytes) << "product " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, GemvOnDevice, ::testing::ValuesIn(all_precisions),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(GemvLimits, RefuseMoreRowsAndRowsThatAreNoWholeVectors) {
    EXPECT_EQ(cuda::gemv_unsupported({Precision::bf16, 16, 100, 64, 100}), "");
    EXPECT_NE(cuda::gemv_unsupported({Precision::bf16, 17, 100, 64, 100}).find("17 rows"), std::string::npos);
    EXPECT_NE(cuda::gemv_unsupported({Precision::bf16, 1, 100, 36, 100}).find("36 elements"), std::string::npos);
    EXPECT_EQ(cuda::gemv_unsupported({Precision::fp32, 1, 100, 36, 100}), "");
    EXPECT_THROW(cuda::gemv({Precision::bf16, 17, 8, 64, 8}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
                 Unsupported);
}

}  // namespace
}  // namespace kbench::test
