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

/// Gradients of a convolution that is another in one thing agree with this one's hardly anywhere.
TEST(Conv2dReference, PlantedErrorsAreFoundInGradients) {
    const Conv2d op{2, 3, 12, 20, 4, 5, 7, 2, 1, 2, 3};
    Conv2d moved = op, dense = op;
    moved.width += 2, moved.pad_w -= 1;                 // x one column off
    dense.stride_h = 1, dense.height -= op.height / 2;  // as many output rows
    ASSERT_EQ(dense.out_height(), op.out_height());
    ASSERT_EQ(moved.out_width(), op.out_width());
    for (const auto& [precision, type] :
         {std::pair(Precision::fp32, DataType::fp32), {Precision::bf16, DataType::bf16}}) {
        const Data data(op, type), wider(moved, type);
        const Matrix dy = Matrix::normal(type, op.batch * op.out_channels * op.out_height(), op.out_width(), 4);
        const auto share = [&](const std::vector<Element>& at, const std::vector<Expected>& right,
                               const std::vector<Expected>& wrong) {
            std::size_t i = 0;
            return reference::disagreement(
                at, right, [&](Element) { return wrong[i++].value; }, precision, type);
        };
        const std::vector<Element> of_x = test::elements(data.x.rows, op.width);
        const auto dx = reference::conv2d_dgrad(op, dy.view(), data.weight.view(), of_x);
        const auto dw_at = test::elements(data.weight.rows, op.kernel_w);
        const auto dw = reference::conv2d_dw(op, data.x.view(), dy.view(), dw_at);
        EXPECT_EQ(share(of_x, dx, dx), 0.0);
        EXPECT_GT(share(of_x, dx, reference::conv2d_dgrad(moved, dy.view(), data.weight.view(), of_x)), 0.9);
        EXPECT_GT(share(dw_at, dw, reference::conv2d_dw(dense, data.x.view(), dy.view(), dw_at)), 0.8);
        const reference::View as_moved = data.x.view();
        Conv2d one_off = op;
        one_off.pad_w -= 1, one_off.kernel_w -= 2;
        ASSERT_EQ(one_off.out_width(), op.out_width());
        const auto few = test::elements(data.weight.rows, one_off.kernel_w);
        EXPECT_GT(share(few, reference::conv2d_dw(op, as_moved, dy.view(), few),
                        reference::conv2d_dw(one_off, as_moved, dy.view(), few)),
                  0.9);
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
using Convolve = decltype(&cpu::conv2d);

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

/// Operands of the gradients of `op`, and what they should be; dw and db: what they are added to.
struct GradientData {
    Conv2d op;
    DataType type;
    Matrix x, weight, dy, dw, db;
    explicit GradientData(const Conv2d& of, DataType stored)
        : op(of),
          type(stored),
          x(Data(of, stored).x),
          weight(Data(of, stored).weight),
          dy(Matrix::normal(stored, of.batch * of.out_channels * of.out_height(), of.out_width(), 5)),
          dw(Matrix::normal(stored, weight.rows, weight.columns, 6)),
          db(Matrix::normal(stored, 1, of.out_channels, 7)) {}

    Matrix before(const Matrix& gradient) const {
        return op.accumulates ? gradient : Matrix::poisoned(type, gradient.rows, gradient.columns);
    }
    void expect_dx(const Matrix& dx, Precision precision) const {
        const auto at = test::elements(x.rows, x.columns);
        test::expect_agrees(dx, at, reference::conv2d_dgrad(op, dy.view(), weight.view(), at), precision);
    }
    void expect_dw_db(const Matrix& made_dw, const Matrix& made_db, Precision precision) const {
        std::vector<reference::View> views{x.view(), dy.view(), dw.view(), db.view()};
        views.resize(op.bias ? 4 : 3);
        const Step step = Step::of(op, Direction::wgrad);
        const auto taps = test::elements(dw.rows, dw.columns), filters = test::elements(1, op.out_channels);
        test::expect_agrees(made_dw, taps, reference::evaluate(step, 2, views, taps), precision);
        if (op.bias) test::expect_agrees(made_db, filters, reference::evaluate(step, 3, views, filters), precision);
    }
};

/// Each small shape also once with an accumulating gradient.
std::vector<Conv2d> gradient_shapes() {
    std::vector<Conv2d> all = shapes;
    for (std::size_t i = 1, count = all.size(); i < count; ++i) all.push_back(all[i].accumulating());
    all.push_back({2, 32, 15, 60, 32, 21, 11, 2, 1, 10, 5, true});
    all.push_back({2, 1, 45, 90, 32, 41, 11, 2, 2, 20, 5, true});
    return all;
}

TEST_P(NativeConv2d, ItsGradientsAgreeWithTheReferenceWhateverTheThreads) {
    const DataType type = GetParam();
    for (const Conv2d& op : gradient_shapes()) {
        SCOPED_TRACE(op.text());
        const GradientData data(op, type);
        const auto run = [&] {
            std::vector<Matrix> made{Matrix::poisoned(type, data.x.rows, data.x.columns), data.before(data.dw),
                                     data.before(data.db)};
            test::Workspace of_dgrad(cpu::conv2d_dgrad_workspace(type, op));
            cpu::conv2d_dgrad(type, op, data.dy.data(), data.weight.data(), made[0].data(), of_dgrad.data());
            test::Workspace of_wgrad(cpu::conv2d_wgrad_workspace(type, op));
            cpu::conv2d_wgrad(type, op, data.x.data(), data.dy.data(), made[1].data(),
                              op.bias ? made[2].data() : nullptr, of_wgrad.data());
            if (!op.bias) made.pop_back();
            return made;
        };
        std::vector<Matrix> made = run();
        const int threads = omp_get_max_threads();
        omp_set_num_threads(1);
        EXPECT_EQ(run(), made);
        omp_set_num_threads(threads);
        data.expect_dx(made[0], test::precision_of(type));
        data.expect_dw_db(made[1], made.back(), test::precision_of(type));
    }
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
TEST_P(OneDnnConv2d, ItsGradientsAgreeWithTheReferenceInsideTheirWorkspace) {
    const Precision precision = GetParam();
    if (const std::string reason = cpu::onednn_unsupported(precision); !reason.empty()) GTEST_SKIP() << reason;
    const DataType type = storage_type(precision);
    for (const Conv2d& op : gradient_shapes()) {
        SCOPED_TRACE(op.text());
        const GradientData data(op, type);
        const cpu::ConvolutionGradient dgrad(op, Direction::dgrad, precision), wgrad(op, Direction::wgrad, precision);
        test::Workspace of_dgrad(dgrad.workspace_bytes()), of_wgrad(wgrad.workspace_bytes());
        Matrix dx = Matrix::poisoned(type, data.x.rows, data.x.columns), dw = data.before(data.dw),
               db = data.before(data.db);
        dgrad.run_dgrad(data.dy.data(), data.weight.data(), dx.data(), of_dgrad.data());
        wgrad.run_wgrad(data.x.data(), data.dy.data(), dw.data(), op.bias ? db.data() : nullptr, of_wgrad.data());
        data.expect_dx(dx, precision);
        data.expect_dw_db(dw, db, precision);
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
