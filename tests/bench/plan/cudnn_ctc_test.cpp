// cuDNN's connectionist temporal classification against the reference. Needs a GPU.
#ifdef KBENCH_HAVE_CUDNN
#include "bench/plan/providers/cuda/cudnn_ctc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/data/random.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "cpu/reference/reference.h"

namespace kbench {
namespace {

/// By either algorithm.
class CudnnCtc : public testing::TestWithParam<std::tuple<Direction, bool>> {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        if (!cudnn_unavailable().empty()) GTEST_SKIP() << cudnn_unavailable();
    }
    /// `whole`: what the int32 operands of these names hold in place of their usual contents.
    void check(const Ctc& op, const std::map<std::string, std::vector<std::int32_t>>& whole) const {
        const auto [direction, one_order] = GetParam();
        const Step step = Step::of(op, direction);
        const std::vector<Operand> list = operands(step, Precision::fp32);
        const std::unique_ptr<Device> device = make_cuda_device();
        std::vector<std::vector<std::byte>> hosts;
        std::vector<DeviceBuffer> buffers;
        std::vector<void*> pointers;
        std::vector<reference::View> views;
        for (const Operand& operand : list) {
            std::vector<std::byte> host(static_cast<std::size_t>(operand.bytes()));
            fill_contents(operand.contents, 1, operand.name, operand.type, operand.rows, operand.columns, host.data(),
                          operand.stride);
            if (const auto found = whole.find(operand.name); found != whole.end())
                std::memcpy(host.data(), found->second.data(), host.size());
            buffers.emplace_back(*device, host.size());
            device->upload(buffers.back().data(), host.data(), host.size());
            pointers.push_back(buffers.back().data());
            hosts.push_back(std::move(host));
            views.push_back({hosts.back().data(), operand.type, operand.rows, operand.columns, operand.stride});
        }
        const auto made = cudnn::make_ctc(op, direction, cudnn::make_handle(), one_order);
        EXPECT_THAT(made->implementation(), testing::EndsWith(one_order ? ", deterministic" : ", non-deterministic"));
        const DeviceBuffer workspace(*device, made->workspace_bytes());
        device->fill(workspace.data(), 0xff, workspace.bytes());  // NaN
        made->run(pointers, workspace.data(), device->stream());
        device->synchronize();
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i].use != OperandUse::output && list[i].use != OperandUse::in_place) continue;
            std::vector<reference::Element> all;
            for (std::int64_t r = 0; r < list[i].rows; ++r)
                for (std::int64_t c = 0; c < list[i].columns; ++c) all.push_back({r, c});
            const auto expected = reference::evaluate(step, i, views, all);
            std::vector<float> found(all.size());
            device->download(found.data(), pointers[i], found.size() * sizeof(float));
            for (std::size_t e = 0; e < all.size(); ++e)
                if (std::isinf(expected[e].value))
                    EXPECT_EQ(found[e], 0) << "what cuDNN says where there is no alignment";
                else
                    EXPECT_TRUE(reference::agrees(found[e], expected[e], Precision::fp32, DataType::fp32))
                        << list[i].name << " " << all[e].row << ", " << all[e].column << ": " << found[e] << ", not "
                        << expected[e].value;
        }
    }
};

TEST_P(CudnnCtc, SequencesAndTargetsOfManyLengths) {
    // 29 steps are enough for 15 targets, whatever they are.
    check({65, 9, 29, 15, 2},
          {{"lengths", {130, 60, 71, 78, 85, 92, 99, 106, 130}}, {"target_lengths", {15, 15, 3, 2, 7, 1, 11, 13, 14}}});
}

/// cuDNN says 0 for an empty text, too. Verification finds it where a run has such texts, and then times nothing.
TEST_P(CudnnCtc, WhereThereIsNoAlignmentLossAndGradientAreZero) {
    check({4, 3, 29, 3}, {{"lengths", {4, 4, 2}}, {"targets", {1, 2, 3, 1, 1, 1, 1, 2, 3}}});
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CudnnCtc,
                         testing::Combine(testing::Values(Direction::fwd, Direction::bwd), testing::Bool()));

}  // namespace
}  // namespace kbench
#endif
