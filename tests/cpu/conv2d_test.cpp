// Convolution: the reference against seven loops, planted errors against its bound, and the CPU's loops against it.
#include "cpu/native/conv2d.h"

#include <gmock/gmock.h>
#include <omp.h>

#include "cpu/blas.h"
#include "cpu/onednn/onednn.h"
#include "tests/cpu/matrix.h"
#include "tests/cpu/reference_data.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using test::Matrix;

enum class Fault { none, padding_off_by_one, flipped_kernel, stride_one, no_bias, edge_repeated };

double by_hand(const Conv2d& op, const Matrix& x, const Matrix& w, const Matrix& bias, Element e,
               Fault fault = Fault::none) {
    const std::int64_t p = e.row % op.out_height(), k = e.row / op.out_height() % op.out_channels;
    const std::int64_t n = e.row / op.out_height() / op.out_channels, q = e.column;
    const std::int64_t pad_w = op.pad_w - (fault == Fault::padding_off_by_one ? 1 : 0);
    const std::int64_t stride_h = fault == Fault::stride_one ? 1 : op.stride_h;
    double sum = op.bias && fault != Fault::no_bias ? bias(0, k) : 0;
    for (std::int64_t c = 0; c < op.in_channels; ++c)
        for (std::int64_t r = 0; r < op.kernel_h; ++r)
            for (std::int64_t s = 0; s < op.kernel_w; ++s) {
                const std::int64_t h = p * stride_h - op.pad_h + r;
                std::int64_t at = q * op.stride_w - pad_w + s;
                if (fault == Fault::edge_repeated) at = std::clamp<std::int64_t>(at, 0, op.width - 1);
                if (h < 0 || h >= op.height || at < 0 || at >= op.width) continue;
                const std::int64_t tap = fault == Fault::flipped_kernel ? op.kernel_w - 1 - s : s;
                sum += x((n * op.in_channels + c) * op.height + h, at) *
                       w((k * op.in_channels + c) * op.kernel_h + r, tap);
            }
    return sum;
}

struct Data {
    Matrix x, weight, bias;
    Data(const Conv2d& op, DataType type)
        : x(Matrix::normal(type, op.batch * op.in_channels * op.height, op.width, 1)),
          weight(Matrix::normal(type, op.out_channels * op.in_channels * op.kernel_h, op.kernel_w, 2)),
          bias(Matrix::normal(type, 1, op.out_channels, 3)) {}
    std::vector<Expected> expected(const Conv2d& op, std::span<const Element> at) const {
        return reference::conv2d(op, x.view(), weight.view(), op.bias ? bias.view() : reference::View{}, at);
    }
};

std::vector<Element> all_of(const Conv2d& op) {
    return test::elements(op.batch * op.out_channels * op.out_height(), op.out_width());
}

const std::vector<Conv2d> shapes{
    {1, 1, 1, 1, 1, 1, 1},
    {2, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, true},
    {1, 1, 21, 37, 4, 11, 5, 2, 2, 5, 2, true},
    {3, 4, 13, 40, 6, 5, 11, 2, 1, 2, 5},
    {1, 2, 5, 100, 3, 5, 7, 3, 2, 0, 0},
    {1, 7, 9, 33, 33, 9, 11, 1, 1, 4, 5, true},
    {1, 2, 5, 450, 3, 3, 11, 1, 2, 1, 5, true},
    {1, 2, 3, 2, 2, 3, 9, 1, 1, 2, 8},  // taps that never meet x
};

TEST(Conv2dReference, IsTheDefinition) {
    for (const Conv2d& op : shapes) {
        const Data data(op, DataType::fp64);
        const std::vector<Element> at = all_of(op);
        const std::vector<Expected> expected = data.expected(op, at);
        for (std::size_t i = 0; i < at.size(); ++i)
            ASSERT_NEAR(expected[i].value, by_hand(op, data.x, data.weight, data.bias, at[i]), 1e-11) << op.text();
    }
}

TEST(Conv2dReference, PlantedErrorsAreFound) {
    const Conv2d op{2, 3, 12, 20, 4, 5, 7, 2, 1, 2, 3, true};
    const std::vector<Element> at = all_of(op);
    for (const auto& [precision, type] :
         {std::pair(Precision::fp32, DataType::fp32), {Precision::bf16, DataType::bf16}}) {
        const Data data(op, type);
        const std::vector<Expected> expected = data.expected(op, at);
        const auto share = [&](Fault fault) {
            return reference::disagreement(
                at, expected, [&](Element e) { return by_hand(op, data.x, data.weight, data.bias, e, fault); },
                precision, type);
        };
        EXPECT_EQ(share(Fault::none), 0.0);
        EXPECT_GT(share(Fault::padding_off_by_one), 0.9);
        EXPECT_GT(share(Fault::flipped_kernel), 0.9);
        EXPECT_GT(share(Fault::stride_one), 0.7);
        EXPECT_GT(share(Fault::no_bias), 0.8);
        EXPECT_GT(share(Fault::edge_repeated), 0.2);
    }
}

TEST(Conv2d, CountsProductsWithPaddingApart) {
    // One position of 5 in the middle of a kernel of 3 with padding 1 meets 3 elements, the two at the ends 2.
    const Conv2d op{1, 1, 1, 5, 1, 1, 3, 1, 1, 0, 1};
    const Work work = op.work(Direction::fwd);
    EXPECT_EQ(work.flops, 2 * (3 * 3 + 2 * 2));
    EXPECT_EQ(work.matrix_flops, 2 * 5 * 3);
    EXPECT_EQ(work.masked_flops, 2 * 2);
    for (const Conv2d& other : shapes) {
        double pairs = 0;
        for (const Element& e : all_of(other)) {
            const std::int64_t p = e.row % other.out_height();
            for (std::int64_t r = 0; r < other.kernel_h; ++r)
                for (std::int64_t s = 0; s < other.kernel_w; ++s) {
                    const std::int64_t h = p * other.stride_h - other.pad_h + r;
                    const std::int64_t w = e.column * other.stride_w - other.pad_w + s;
                    pairs += h >= 0 && h < other.height && w >= 0 && w < other.width;
                }
        }
        const double bias = other.bias ? static_cast<double>(all_of(other).size()) : 0;
        EXPECT_EQ(other.work(Direction::fwd).flops, 2 * pairs * static_cast<double>(other.in_channels) + bias)
            << other.text();
    }
}

using Workspace = std::size_t (*)(DataType, const Conv2d&);
using Convolve = void (*)(DataType, const Conv2d&, const void*, const void*, const void*, void*, void*);

void expect_agreement_whatever_the_threads(DataType type, Workspace bytes, Convolve convolve) {
    for (const Conv2d& op : shapes) {
        SCOPED_TRACE(op.text());
        const Data data(op, type);
        const auto run = [&] {
            Matrix out = Matrix::poisoned(type, op.batch * op.out_channels * op.out_height(), op.out_width());
            test::Workspace workspace(bytes(type, op));
            convolve(type, op, data.x.data(), data.weight.data(), op.bias ? data.bias.data() : nullptr, out.data(),
                     workspace.data());
            return out;
        };
        const Matrix out = run();
        const std::vector<Element> at = all_of(op);
        test::expect_agrees(out, at, data.expected(op, at), test::precision_of(type));
        const int threads = omp_get_max_threads();
        omp_set_num_threads(1);
        EXPECT_EQ(run(), out);
        omp_set_num_threads(threads);
    }
}

class NativeConv2d : public testing::TestWithParam<DataType> {};

TEST_P(NativeConv2d, AgreesWithTheReferenceWhateverTheThreads) {
    expect_agreement_whatever_the_threads(GetParam(), cpu::conv2d_workspace, cpu::conv2d);
}
INSTANTIATE_TEST_SUITE_P(Types, NativeConv2d,
                         testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64));

TEST(BlasConv2d, AgreesWithTheReferenceWhateverTheThreads) {
    for (const DataType type : {DataType::fp32, DataType::fp64})
        expect_agreement_whatever_the_threads(type, cpu::blas_conv2d_workspace, cpu::blas_conv2d);
}

class OneDnnConv2d : public testing::TestWithParam<Precision> {};

TEST_P(OneDnnConv2d, AgreesWithTheReferenceWithAPackedWeightAndInsideItsWorkspace) {
    const Precision precision = GetParam();
    if (const std::string reason = cpu::onednn_unsupported(precision); !reason.empty()) GTEST_SKIP() << reason;
    const DataType type = storage_type(precision);
    std::vector<Conv2d> all = shapes;
    all.push_back({2, 32, 15, 60, 32, 21, 11, 2, 1, 10, 5, true});
    all.push_back({2, 1, 45, 90, 32, 41, 11, 2, 2, 20, 5, true});
    for (const Conv2d& op : all) {
        SCOPED_TRACE(op.text());
        const Data data(op, type);
        const cpu::Convolution step(op, precision);
        test::Workspace packed(step.packed_bytes()), workspace(step.workspace_bytes());
        step.pack(data.weight.data(), packed.data());
        Matrix out = Matrix::poisoned(type, op.batch * op.out_channels * op.out_height(), op.out_width());
        step.run(data.x.data(), packed.data(), op.bias ? data.bias.data() : nullptr, out.data(), workspace.data());
        const std::vector<Element> at = all_of(op);
        test::expect_agrees(out, at, data.expected(op, at), precision);
    }
}
INSTANTIATE_TEST_SUITE_P(Precisions, OneDnnConv2d, testing::Values(Precision::fp32, Precision::bf16, Precision::fp16),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(OneDnnConv2d, OfDeepConvolutionsIsABlockedKernelWhereTheCpuHasAvx512) {
    if (!cpu::onednn_isa().starts_with("avx512")) GTEST_SKIP() << "this CPU has " << cpu::onednn_isa();
    for (const Conv2d& op :
         {Conv2d{8, 1, 161, 1000, 32, 41, 11, 2, 2, 20, 5, true}, {8, 32, 81, 500, 32, 21, 11, 2, 1, 10, 5, true}})
        EXPECT_THAT(cpu::Convolution(op, Precision::fp32).implementation(),
                    testing::AnyOf(testing::StartsWith("brg"), testing::StartsWith("jit")));
}

}  // namespace
}  // namespace kbench
