// The norm of all gradients against the reference.
#include "kernels/global_norm.h"

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class GlobalNormOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    static std::vector<HostMatrix> gradients_of(const GlobalNorm& op) {
        std::vector<HostMatrix> gradients;
        for (const std::int64_t size : op.sizes)
            gradients.push_back(HostMatrix::normal(GetParam(), 1, size, static_cast<unsigned>(gradients.size()), 0.01));
        return gradients;
    }

    /// `offset` elements past a boundary every third gradient lies.
    static HostMatrix run(const GlobalNorm& op, const std::vector<HostMatrix>& gradients, std::int64_t offset = 0) {
        std::vector<DeviceMatrix> on_device;
        std::vector<void*> pointers;
        for (std::size_t i = 0; i < gradients.size(); ++i)
            on_device.emplace_back(gradients[i], i % 3 == 1 ? offset : 0);
        for (const DeviceMatrix& gradient : on_device) pointers.push_back(gradient.data());
        const auto norm = DeviceMatrix::poisoned(GetParam() == DataType::fp64 ? DataType::fp64 : DataType::fp32, 1, 1);
        const auto doubles = static_cast<std::int64_t>(cuda::global_norm_workspace(GetParam(), op) / sizeof(double));
        const auto workspace = DeviceMatrix::poisoned(DataType::fp64, 1, doubles);
        cuda::global_norm(GetParam(), op, pointers, norm.data(), workspace.data(), nullptr);
        workspace.download();  // its guards
        return norm.download();
    }

    static void check(const GlobalNorm& op, std::int64_t offset = 0) {
        const std::vector<HostMatrix> gradients = gradients_of(op);
        std::vector<reference::View> views;
        for (const HostMatrix& gradient : gradients) views.push_back(gradient.view());
        const HostMatrix norm = run(op, gradients, offset), again = run(op, gradients, offset);
        expect_agrees(norm, elements_of(1, 1), reference::global_norm(views), precision_of(GetParam()));
        EXPECT_EQ(norm.bytes, again.bytes) << "another run";
    }
};

TEST_P(GlobalNormOnDevice, IsTheLengthOfTensorsOfAnySizeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t offset : {0, 1, 3})
        check({{1, 2, 7, 8, 9, 100, 1283, 16383, 16384, 16385, 100003, 1, 40001}}, offset);
    check({{1}});
}

TEST_P(GlobalNormOnDevice, OfMoreTensorsThanOneLaunchHoldsAndOfALargeOne) {
    KBENCH_NEEDS_DEVICE();
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < 3500; ++i) sizes.push_back(i % 37 + 1);
    check({sizes});
    check({{5, 50'000'003, 17}});
}

TEST_P(GlobalNormOnDevice, IsNotFiniteWhereAGradientIsNot) {
    KBENCH_NEEDS_DEVICE();
    const GlobalNorm op{{100, 50001}};
    for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")})
        for (const std::int64_t at : {0, 20000, 50000}) {
            std::vector<HostMatrix> gradients = gradients_of(op);
            gradients[1].set(0, at, value);
            EXPECT_FALSE(std::isfinite(run(op, gradients)(0, 0))) << value << " at " << at;
        }
}

INSTANTIATE_TEST_SUITE_P(Types, GlobalNormOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
