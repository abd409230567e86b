// Texts of ranges as PyTorch's emit_nvtx and the hook write them, and those that only look like them.
#include "analysis/program/frame_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Frame, IsAModuleOfTheHook) {
    const Frame frame =
        parse_frame(R"(kbench:{"layer":"h.0.attn.c_attn","class":"Conv1D","dtype":"float16","line":"bench.py:40"})");
    EXPECT_EQ(frame.kind, FrameKind::module);
    EXPECT_EQ(frame.name, "h.0.attn.c_attn");
    EXPECT_EQ(frame.class_name, "Conv1D");
    EXPECT_EQ(frame.dtype, "float16");
    EXPECT_EQ(frame.line, "bench.py:40");
    EXPECT_EQ(parse_frame(R"(kbench:{"layer":""})").kind, FrameKind::module) << "the model itself";
}

TEST(Frame, IsAnOpWithItsSizes) {
    const Frame frame = parse_frame(
        "aten::addmm, seq = 12, op_id = 34, sizes = [[3840], [1024, 1280], [1280, 3840], [], []], "
        "input_op_ids = [(33,0), (31,0)]");
    EXPECT_EQ(frame.kind, FrameKind::op);
    EXPECT_EQ(frame.name, "aten::addmm");
    EXPECT_EQ(frame.sequence, 12);
    EXPECT_THAT(frame.sizes,
                ElementsAre(ElementsAre(3840), ElementsAre(1024, 1280), ElementsAre(1280, 3840), IsEmpty(), IsEmpty()));
    EXPECT_EQ(frame.parameters, "[[3840], [1024, 1280], [1280, 3840], [], []]");
}

TEST(Frame, IsAnOpWithoutSomeOfIt) {
    EXPECT_EQ(parse_frame("aten::empty").kind, FrameKind::op);
    const Frame plain = parse_frame("aten::mm, op_id = 7, sizes = [[2, 3], [3, 4]]");
    EXPECT_EQ(plain.sequence, std::nullopt);
    EXPECT_EQ(plain.sizes.size(), 2u);
    const Frame cut = parse_frame("aten::mm, seq = 5, sizes = [[2, 3], [3");
    EXPECT_EQ(cut.name, "aten::mm");
    EXPECT_THAT(cut.sizes, IsEmpty());
    for (const char* odd : {"aten::mm, seq = -3", "aten::mm, seq = x", "aten::mm, sizes = [[[1]]]",
                            "aten::mm, sizes = ]", "aten::mm, sizes = [[99999999999999999999]]", "aten::mm, sizes = "})
        EXPECT_EQ(parse_frame(odd).name, "aten::mm") << odd;
    EXPECT_THAT(parse_frame("aten::mm, sizes = [[9223372036854775807]]").sizes, IsEmpty());
    EXPECT_EQ(parse_frame("mylib::fused, seq = 3").kind, FrameKind::op);
}

TEST(Frame, IsANodeOfTheBackward) {
    const Frame node = parse_frame("AddmmBackward0, seq = 12, op_id = 99, sizes = [[1024, 3840]]");
    EXPECT_EQ(node.kind, FrameKind::backward);
    EXPECT_EQ(node.name, "AddmmBackward0");
    EXPECT_EQ(node.sequence, 12);
    EXPECT_EQ(parse_frame("MyFunctionBackward, seq = 3").kind, FrameKind::backward);
    const Frame cpp = parse_frame("torch::autograd::CppNode<std::pair<a, b>, c>, seq = 4");
    EXPECT_EQ(cpp.kind, FrameKind::backward);
    EXPECT_EQ(cpp.sequence, 4);
    const Frame around = parse_frame("autograd::engine::evaluate_function: AddmmBackward0, op_id = 98");
    EXPECT_EQ(around.kind, FrameKind::evaluation);
    EXPECT_EQ(around.name, "AddmmBackward0");
    EXPECT_EQ(parse_frame("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad").kind,
              FrameKind::gradient);
    EXPECT_EQ(parse_frame("torch::autograd::AccumulateGrad, op_id = 5").kind, FrameKind::gradient);
}

TEST(Frame, IsACallOfTheOptimizer) {
    const Frame frame = parse_frame("Optimizer.step#AdamW.step, op_id = 3");
    EXPECT_EQ(frame.kind, FrameKind::optimizer);
    EXPECT_EQ(frame.name, "Optimizer.step#AdamW.step");
}

TEST(Frame, IsTheProgramsOwnElsewhere) {
    for (const char* text : {"epoch 3", "load, seq = 3 of 9", "My::Phase", "kbench:{\"layer\":5}", "kbench:nonsense",
                             "kbench:{", "", "Backwards", "the Backward"}) {
        const Frame frame = parse_frame(text);
        EXPECT_EQ(frame.kind, FrameKind::user) << text;
        EXPECT_EQ(frame.name, text);
        EXPECT_EQ(frame.sequence, std::nullopt);
    }
    EXPECT_EQ(parse_frame("record, op_id = 12").name, "record") << "torch.profiler.record_function's number is cut";
    EXPECT_EQ(parse_frame("kbench:" + std::string(1000, '[')).kind, FrameKind::user);
}

}  // namespace
}  // namespace kbench
