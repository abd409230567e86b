// Backward of fused attention, and the lse that its forward leaves for it, against the reference.
#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "kbench/error.h"
#include "kernels/attention/attention.h"
#include "kernels/check.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/less_shared_memory.h"

namespace kbench::test {
namespace {

using cuda::AttentionArguments;
using cuda::AttentionGradientArguments;

DataType lse_type(Precision precision) { return precision == Precision::fp64 ? DataType::fp64 : DataType::fp32; }

AttentionGradientArguments arguments_of(const Attention& op, Precision precision) {
    return {nullptr,  nullptr,        nullptr,        nullptr,      nullptr,
            nullptr,  op.shape.batch, op.shape.heads, op.shape.seq, op.shape.head_size,
            op.scale, precision};
}

/// A problem on the device with an out and an lse that our own forward made, or with other ones.
class Backward {
  public:
    Backward(const Attention& op, Precision precision, double deviation = 1)
        : Backward(op, precision,
                   HostMatrix::normal(storage_type(precision), op.shape.rows(), 3 * op.shape.width(), 1, deviation)) {}
    Backward(const Attention& op, Precision precision, HostMatrix qkv)
        : op_(op),
          precision_(precision),
          type_(storage_type(precision)),
          qkv_(std::move(qkv)),
          dout_(HostMatrix::normal(type_, op.shape.rows(), op.shape.width(), 2)),
          out_(type_, op.shape.rows(), op.shape.width()),
          lse_(lse_type(precision), op.shape.batch * op.shape.heads, op.shape.seq) {
        const DeviceMatrix on_device(qkv_), out = DeviceMatrix::poisoned(type_, out_.rows, out_.columns),
                                            lse = DeviceMatrix::poisoned(lse_.type, lse_.rows, lse_.columns);
        AttentionArguments forward{on_device.data(),   out.data(), op.shape.batch, op.shape.heads, op.shape.seq,
                                   op.shape.head_size, op.scale,   precision,      lse.data()};
        cuda::attention_forward(forward, nullptr);
        out_ = out.download();
        lse_ = lse.download();
        forward.lse = nullptr;
        cuda::attention_forward(forward, nullptr);
        EXPECT_EQ(out.download().bytes, out_.bytes) << "lse changes out";
    }
    void replace_out_and_lse(HostMatrix out, HostMatrix lse) {
        out_ = std::move(out);
        lse_ = std::move(lse);
    }

    void expect_lse_agrees() const {
        const auto some = elements_of(lse_.rows, lse_.columns, 2000);
        expect_agrees(lse_, some, reference::attention_lse(op_, qkv_.view(), some), precision_);
    }

    /// dqkv of `op`, run as often as it is asked to, also from a graph.
    HostMatrix gradient(const Attention& op, int graph_launches = 0) const {
        const DeviceMatrix qkv(qkv_), out(out_), dout(dout_), lse(lse_);
        const auto dqkv = DeviceMatrix::poisoned(type_, qkv_.rows, qkv_.columns);
        AttentionGradientArguments arguments = arguments_of(op, precision_);
        const auto numbers = static_cast<std::int64_t>(cuda::attention_gradient_workspace(arguments) / sizeof(double));
        const auto workspace = DeviceMatrix::poisoned(DataType::fp64, 1, numbers);
        arguments.qkv = qkv.data();
        arguments.out = out.data();
        arguments.dout = dout.data();
        arguments.lse = lse.data();
        arguments.dqkv = dqkv.data();
        arguments.workspace = workspace.data();
        cuda::attention_backward(arguments, nullptr);
        HostMatrix result = dqkv.download();
        workspace.download();  // checks its guards
        if (graph_launches > 0) expect_the_same_from_a_graph(arguments, dqkv, result, graph_launches);
        return result;
    }
    HostMatrix gradient() const { return gradient(op_); }

    std::vector<reference::Expected> expected(const std::vector<reference::Element>& elements) const {
        return reference::attention_gradient(op_, qkv_.view(), out_.view(), dout_.view(), lse_.view(), elements);
    }

    /// ||dqkv - truth|| / ||truth|| of a part (q, k, v), the truth being of an exact forward and backward.
    double relative_error(std::int64_t part) const {
        HostMatrix out(DataType::fp64, out_.rows, out_.columns), lse(DataType::fp64, lse_.rows, lse_.columns);
        const auto fill = [](HostMatrix& matrix, const std::vector<reference::Element>& at,
                             const std::vector<reference::Expected>& values) {
            for (std::size_t i = 0; i < at.size(); ++i) matrix.set(at[i].row, at[i].column, values[i].value);
        };
        const auto all = [](const HostMatrix& of) {
            return elements_of(of.rows, of.columns, static_cast<std::size_t>(of.rows * of.columns));
        };
        const auto of_out = all(out), of_lse = all(lse);
        fill(out, of_out, reference::attention(op_, qkv_.view(), of_out));
        fill(lse, of_lse, reference::attention_lse(op_, qkv_.view(), of_lse));
        std::vector<reference::Element> elements;
        for (std::int64_t row = 0; row < qkv_.rows; ++row)
            for (std::int64_t c = 0; c < op_.shape.width(); ++c)
                elements.push_back({row, part * op_.shape.width() + c});
        const auto truth =
            reference::attention_gradient(op_, qkv_.view(), out.view(), dout_.view(), lse.view(), elements);
        const HostMatrix dqkv = gradient();
        double error = 0, norm = 0;
        for (std::size_t i = 0; i < elements.size(); ++i) {
            error += std::pow(dqkv(elements[i].row, elements[i].column) - truth[i].value, 2);
            norm += std::pow(truth[i].value, 2);
        }
        return std::sqrt(error / norm);
    }

    /// Whole rows of heads: every row where tiles begin and end, and some between them.
    std::vector<reference::Element> some_elements() const {
        std::set<std::int64_t> rows;
        for (std::int64_t batch = 0; batch < op_.shape.batch; ++batch)
            for (std::int64_t at = 0; at < op_.shape.seq; ++at) {
                const bool edge = at % 64 == 0 || at % 64 == 63 || at == op_.shape.seq - 1;
                if (op_.shape.seq < 70 || (edge && at % 192 < 65) || at % 61 == 7)
                    rows.insert(batch * op_.shape.seq + at);
            }
        std::vector<reference::Element> elements;
        for (const std::int64_t row : rows)
            for (std::int64_t column = 0; column < qkv_.columns; ++column) elements.push_back({row, column});
        return elements;
    }
    void expect_gradient_agrees() const {
        const HostMatrix dqkv = gradient();
        const auto some = some_elements();
        expect_agrees(dqkv, some, expected(some), precision_);
        for (std::int64_t row = 0; row < dqkv.rows; ++row)
            for (std::int64_t column = 0; column < dqkv.columns; ++column)
                ASSERT_TRUE(std::isfinite(dqkv(row, column))) << "row " << row << ", column " << column;
    }

    /// The share of elements of a part of dqkv (q, k, v) that another op's gradient has wrong.
    double wrong(const Attention& other, std::int64_t part) const {
        const HostMatrix dqkv = gradient(other);
        std::vector<reference::Element> elements;
        for (const reference::Element& e : some_elements())
            if (e.column / op_.shape.width() == part) elements.push_back(e);
        const auto right = expected(elements);
        double refused = 0;
        for (std::size_t i = 0; i < elements.size(); ++i)
            refused += !reference::agrees(dqkv(elements[i].row, elements[i].column), right[i], precision_, type_);
        return refused / static_cast<double>(elements.size());
    }

  private:
    void expect_the_same_from_a_graph(const AttentionGradientArguments& arguments, const DeviceMatrix& dqkv,
                                      const HostMatrix& result, int launches) const {
        cudaStream_t stream = nullptr;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        KBENCH_CUDA(cudaStreamCreate(&stream));
        KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        cuda::attention_backward(arguments, stream);
        KBENCH_CUDA(cudaStreamEndCapture(stream, &graph));
        KBENCH_CUDA(cudaGraphInstantiate(&executable, graph, 0));
        for (int launch = 0; launch < launches; ++launch) {
            KBENCH_CUDA(cudaMemset(arguments.dqkv, 0xff, result.bytes.size()));
            KBENCH_CUDA(cudaDeviceSynchronize());
            KBENCH_CUDA(cudaGraphLaunch(executable, stream));
            KBENCH_CUDA(cudaStreamSynchronize(stream));
            EXPECT_TRUE(dqkv.download().bytes == result.bytes) << "launch " << launch;
        }
        KBENCH_CUDA(cudaGraphExecDestroy(executable));
        KBENCH_CUDA(cudaGraphDestroy(graph));
        KBENCH_CUDA(cudaStreamDestroy(stream));
    }

    Attention op_;
    Precision precision_;
    DataType type_;
    HostMatrix qkv_, dout_, out_, lse_;
};

class AttentionGradientShapes : public testing::TestWithParam<std::tuple<Precision, int>> {};
INSTANTIATE_TEST_SUITE_P(All, AttentionGradientShapes,
                         testing::Combine(testing::ValuesIn(all_precisions), testing::Values(64, 128, 80, 100, 32, 33)),
                         [](const auto& instance) {
                             return std::string(name(std::get<0>(instance.param))) + "_head" +
                                    std::to_string(std::get<1>(instance.param));
                         });

TEST_P(AttentionGradientShapes, MatchesTheReference) {
    KBENCH_NEEDS_DEVICE();
    const auto [precision, head_size] = GetParam();
    for (const std::int64_t seq : {1, 17, 64, 65, 129, 1000})
        for (const std::int64_t batch : {1, 3}) {
            SCOPED_TRACE(testing::Message() << "batch " << batch << " seq " << seq);
            const Attention op{{batch, 2, seq, head_size}, 1 / std::sqrt(static_cast<double>(head_size))};
            const Backward backward(op, precision);
            backward.expect_lse_agrees();
            backward.expect_gradient_agrees();
            if (HasFatalFailure()) return;
        }
}

class AttentionGradientPrecisions : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(All, AttentionGradientPrecisions, testing::ValuesIn(all_precisions),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_P(AttentionGradientPrecisions, ManyRowsMatchToo) {
    KBENCH_NEEDS_DEVICE();
    for (const AttentionShape& shape : {AttentionShape{15, 14, 200, 64}, {22, 15, 129, 64}, {4, 11, 1000, 64}}) {
        SCOPED_TRACE(shape.text());
        const Backward backward({shape, 0.125}, GetParam());
        backward.expect_lse_agrees();
        backward.expect_gradient_agrees();
    }
}

TEST_P(AttentionGradientPrecisions, MatchOnAGpuOfLessSharedMemory) {
    KBENCH_NEEDS_DEVICE();
    const LessSharedMemory as_a_4090_has;
    for (const AttentionShape& shape : {AttentionShape{2, 3, 130, 64}, {15, 14, 200, 64}}) {
        SCOPED_TRACE(shape.text());
        const Backward backward({shape, 0.125}, GetParam());
        backward.expect_lse_agrees();
        backward.expect_gradient_agrees();
    }
}

TEST_P(AttentionGradientPrecisions, LargeScoresMatchToo) {
    KBENCH_NEEDS_DEVICE();
    const Backward backward({{1, 2, 300, 64}, 0.5}, GetParam(), 3);
    backward.expect_lse_agrees();
    backward.expect_gradient_agrees();
}

TEST_P(AttentionGradientPrecisions, TakesAnyOutAndLse) {
    KBENCH_NEEDS_DEVICE();
    const Attention op{{2, 3, 200, 64}, 0.125};
    Backward backward(op, GetParam());
    backward.replace_out_and_lse(HostMatrix::normal(storage_type(GetParam()), 400, 192, 7, 0.1),
                                 HostMatrix::normal(lse_type(GetParam()), 6, 200, 8, 0.5, 4));
    backward.expect_gradient_agrees();
}

TEST_P(AttentionGradientPrecisions, RepeatedRunsAreBitEqualAlsoFromAGraph) {
    KBENCH_NEEDS_DEVICE();
    for (const Attention& op :
         {Attention{{2, 5, 700, 64}, 0.125}, Attention{{4, 20, 700, 64}, 0.125}, Attention{{1, 3, 333, 128}, 0.1}})
        Backward(op, GetParam()).gradient(op, 3);
}

TEST_P(AttentionGradientPrecisions, ABoundThatHoldsRefusesAWrongScale) {
    KBENCH_NEEDS_DEVICE();
    const Attention op{{1, 2, 200, 64}, 0.125}, scaled{{1, 2, 200, 64}, 0.125 * 1.1};
    const Backward backward(op, GetParam());
    for (const std::int64_t part : {0, 1, 2}) {
        EXPECT_EQ(backward.wrong(op, part), 0) << part;
        EXPECT_GT(backward.wrong(scaled, part), 0.5) << part;
    }
}

// Values of 64 and a bit make dP and D some 50 times as large as their difference. q, k and v have few enough bits for
// tf32; dout and the probabilities have not. Where D and dP took the same of dout, and out is a mean of v, what
// remains are the roundings of dS, P and dout: 2.1e-4 to 4.0e-4 in simulations of 18 problems, and about 1e-4 for sums
// in fp32. With D of a dout that is not rounded it is 1.4e-2 and more, with a sum of probabilities that are not,
// 2.5e-3.
TEST(AttentionGradientTf32, WhatAllValuesShareCancels) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t seq : {17, 64, 200})
        for (const std::int64_t head_size : {64, 128, 32}) {
            SCOPED_TRACE(testing::Message() << "seq " << seq << ", head size " << head_size);
            const Attention op{{1, 2, seq, head_size}, 1 / std::sqrt(static_cast<double>(head_size))};
            HostMatrix qkv = HostMatrix::normal(DataType::fp32, seq, 3 * op.shape.width(), 1);
            for (std::int64_t row = 0; row < seq; ++row)
                for (std::int64_t column = 0; column < qkv.columns; ++column) {
                    const bool of_v = column >= 2 * op.shape.width();
                    const double step = of_v ? 0x1p-4 : 0x1p-6;
                    qkv.set(row, column, (of_v ? 64 : 0) + std::round(qkv(row, column) / step) * step);
                }
            const Backward backward(op, Precision::tf32, std::move(qkv));
            for (const std::int64_t part : {0, 1, 2}) EXPECT_LT(backward.relative_error(part), 1e-3) << part;
        }
}

TEST(AttentionGradientLimits, WiderHeadsAreUnsupportedWithTheLimitNamed) {
    try {
        cuda::attention_backward(arguments_of({{1, 1, 1, 129}, 1.0}, Precision::fp16), nullptr);
        FAIL() << "head_size 129 was accepted";
    } catch (const Unsupported& error) {
        EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("129"), testing::HasSubstr("128")));
    }
}

TEST(AttentionGradientLimits, KernelNameTellsPrecisionPaddedHeadAndTile) {
    const auto kernel = [](const AttentionShape& shape, Precision precision) {
        return cuda::attention_gradient_kernel_name(arguments_of({shape, 1.0}, precision));
    };
    EXPECT_EQ(kernel({1, 1, 1, 64}, Precision::fp16), "attention_gradient_mma<fp16,64,64x64>");
    EXPECT_EQ(kernel({15, 14, 200, 64}, Precision::fp16), "attention_gradient_mma<fp16,64,128x64>");
    EXPECT_EQ(kernel({1, 1, 1, 65}, Precision::fp32), "attention_gradient_fma<fp32,96,64x32>");
}

TEST(AttentionGradientLimits, AGpuOfLessSharedMemoryTakesTheSmallerTilesOfWiderHeads) {
    const LessSharedMemory as_a_4090_has;
    const auto kernel = [](std::int64_t head_size, Precision precision) {
        return cuda::attention_gradient_kernel_name(arguments_of({{1, 1, 1, head_size}, 1.0}, precision));
    };
    EXPECT_EQ(kernel(64, Precision::fp16), "attention_gradient_mma<fp16,64,64x64>");
    EXPECT_EQ(kernel(64, Precision::fp32), "attention_gradient_fma<fp32,96,64x32>");
    EXPECT_EQ(kernel(64, Precision::fp64), "attention_gradient_mma<fp64,96,32x16>");
    try {
        kernel(128, Precision::fp32);
        FAIL() << "no GPU of 8.9 has room for it";
    } catch (const Unsupported& error) {
        EXPECT_STREQ(
            error.what(),
            "backward of attention with head_size 128: the fused kernels need 112128 bytes of shared memory for a block, this GPU has 101376");
    }
}

}  // namespace
}  // namespace kbench::test
