// Op kinds from outside kbench: what registering refuses, and that they are written, fused, computed, verified and
// accounted for like kbench's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "bench/device/device.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "kbench/kernel.h"
#include "models/cost.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// y = min(max(x, -1), 1), and its gradient. A bias may come before it, a residual after it.
struct Clamp {
    static constexpr std::string_view kind = "clamp", what = "clamps to [-1, 1]";
    static constexpr std::string_view example = "r4w6[+bias][+residual]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    bool operator==(const Clamp&) const = default;

    static Clamp parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::fwd) return {input("x", rows, width), output("out", rows, width)};
        return {input("d_out", rows, width), input("x", rows, width), output("d_x", rows, width)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction direction) const {
        return {(direction == Direction::fwd ? 2.0 : 3.0) * static_cast<double>(rows * width)};
    }
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction != Direction::fwd) return {};
        return {{.before = {"bias"}, .after = {"residual"}}, {.before = {"bias"}}, {.after = {"residual"}}};
    }
};

std::vector<reference::Expected> expected_clamp(const Clamp&, reference::Question q) {
    const bool backward = q.step.direction == Direction::bwd;
    const reference::View gradient = q.next_if(backward), x = q.next(), bias = q.next_if(q.step.absorbs<BiasAdd>()),
                          residual = q.next_if(q.step.absorbs<ResidualAdd>());
    std::vector<reference::Expected> values;
    for (const auto& [row, column] : q.elements) {
        const double sum = x(row, column) + (bias ? bias(0, column) : 0);
        double value = std::clamp(sum, -1.0, 1.0) + (residual ? residual(row, column) : 0);
        if (backward) value = std::abs(sum) < 1 ? gradient(row, column) : 0;
        values.push_back({value, std::abs(sum) + std::abs(value), 3});
    }
    return values;
}

/// On a CPU in fp64, with all of its fusions. `limit`: 1 where it is right.
UserKernel<Clamp> clamp_kernel(const std::string& name, double limit) {
    return {.name = name,
            .backend = BackendKind::cpu,
            .what = "a test's clamp",
            .precisions = {Precision::fp64},
            .run =
                [limit](const Clamp& op, const KernelCall& call) {
                    OperandCursor operands = call.operands;
                    const auto* x = operands.next<const double>();
                    const auto* bias = static_cast<const double*>(operands.next_if(call.step.absorbs<BiasAdd>()));
                    const auto* residual =
                        static_cast<const double*>(operands.next_if(call.step.absorbs<ResidualAdd>()));
                    auto* out = operands.next<double>();
                    for (std::int64_t i = 0; i < op.rows * op.width; ++i) {
                        const double sum = x[i] + (bias != nullptr ? bias[i % op.width] : 0);
                        out[i] = std::clamp(sum, -limit, limit) + (residual != nullptr ? residual[i] : 0);
                    }
                },
            .absorbs = {{"bias"}, {"residual"}, {"bias", "residual"}}};
}

/// Once a process: tests run alone, and all in one.
void register_clamp() {
    static const bool done = register_op<Clamp>({.expected = expected_clamp}) &&
                             register_kernel(clamp_kernel("clamping", 1)) &&
                             register_kernel(clamp_kernel("clamping_wrong", 0.9));
    ASSERT_TRUE(done);
}

std::unique_ptr<Provider> made_provider(const std::string& name) {
    for (const ProviderRow& row : provider_rows())
        if (row.name == name && row.backend == BackendKind::cpu) return row.make({});
    throw std::runtime_error("no provider " + name);
}

/// The steps of a model of one run of `shape`, by `provider` where it takes them and by kbench's own where not.
std::vector<std::string> steps(const std::string& shape, const std::string& provider,
                               Precision precision = Precision::fp64) {
    const Model model = make_problem_model(parse_problem("clamp", shape), 1, 1);
    const Providers providers = make_providers(BackendKind::cpu, {});
    std::vector<std::string> list;
    for (const AssignedStep& s : assign_steps(model, precision, providers, {{"clamp", provider}}, 1))
        list.push_back(std::string(op_name(s.step)) + " " + shape_text(s.step));
    return list;
}

TEST(UserOp, IsWrittenReadAndAccountedForLikeKbenchsOwn) {
    register_clamp();
    EXPECT_EQ(op_kinds().back(), &op_kind<Clamp>());
    EXPECT_EQ(find_op_kind("clamp"), &op_kind<Clamp>());
    for (const char* shape : {"r4w6", "r4w6+bias", "r4w6+residual", "r4w6+bias+residual"})
        EXPECT_EQ(shape_text(parse_problem("clamp", shape)), shape);
    EXPECT_THAT(error_line<UsageError>([] { parse_problem("clamp", "r4w6+gelu"); }),
                HasSubstr("must be written like r4w6[+bias][+residual]"));
    EXPECT_THROW(parse_problem("clamp", "r4w6", Direction::dgrad), UsageError);

    const Model forward = make_problem_model(parse_problem("clamp", "r4w6"), 1, 1);
    const Model backward = make_problem_model(parse_problem("clamp", "r4w6", Direction::bwd), 1, 1);
    EXPECT_EQ(step_cost(forward, {0}, Precision::fp32).flops, 2 * 24);
    EXPECT_EQ(step_cost(backward, {0}, Precision::fp32).flops, 3 * 24);
    EXPECT_EQ(step_cost(backward, {0}, Precision::fp32).bytes(), 3 * 4 * 24);
    EXPECT_EQ(backward.ops.at(0).direction, Direction::bwd);
}

TEST(UserOp, IsFusedAsItAndItsKernelSay) {
    register_clamp();
    EXPECT_THAT(steps("r4w6+bias+residual", "clamping"), ElementsAre("clamp r4w6+bias+residual"));
    EXPECT_THAT(steps("r4w6+bias", "clamping"), ElementsAre("clamp r4w6+bias"));
    EXPECT_THAT(steps("r4w6", "clamping"), ElementsAre("clamp r4w6"));
    UserKernel<Clamp> alone = clamp_kernel("clamping_alone", 1);
    alone.absorbs = {{"residual"}};
    register_kernel(alone);
    EXPECT_THAT(steps("r4w6+bias+residual", "clamping_alone"), ElementsAre("bias r4w6", "clamp r4w6+residual"))
        << "what it does not take is computed apart";
    EXPECT_THAT(error_line<Unsupported>([] { steps("r4w6", "clamping", Precision::fp32); }),
                HasSubstr("clamping: has no clamp in fp32"));
}

TEST(UserOp, IsVerifiedWithWhatIsFusedToIt) {
    register_clamp();
    const auto device = make_cpu_device();
    const auto verify = [&](const char* shape, const char* provider) {
        const Step step = parse_problem("clamp", shape);
        const auto computation = made_provider(provider)->make(step, Precision::fp64);
        return verify_step({&step, computation.get(), provider, "layer"}, Precision::fp64, *device, 1);
    };
    for (const char* shape : {"r40w60", "r40w60+bias", "r40w60+residual", "r40w60+bias+residual"}) {
        EXPECT_EQ(verify(shape, "clamping").elements_checked, 40 * 60) << shape;
        EXPECT_EQ(verify(shape, "reference").elements_checked, 40 * 60) << shape;
        EXPECT_THAT(error_line<MeasurementError>([&] { verify(shape, "clamping_wrong"); }),
                    HasSubstr("verification failed: clamp " + std::string(shape)));
    }
}

TEST(UserOp, ItsBackwardIsAnotherStepThatOnlyWhoHasItComputes) {
    register_clamp();
    const Step backward = parse_problem("clamp", "r4w6", Direction::bwd);
    EXPECT_EQ(made_provider("clamping")->unsupported(backward, Precision::fp64), "has no clamp in direction bwd");
    const auto reference = made_provider("reference");
    EXPECT_EQ(reference->unsupported(backward, Precision::fp64), "");
    const auto device = make_cpu_device();
    const auto computation = reference->make(backward, Precision::fp64);
    EXPECT_EQ(
        verify_step({&backward, computation.get(), "reference", ""}, Precision::fp64, *device, 1).elements_checked, 24);
    EXPECT_THROW(parse_problem("clamp", "r4w6+bias", Direction::bwd), UsageError) << "its fusions are the forward's";
}

TEST(UserOp, OpsOfDifferentDirectionsAreDifferentSteps) {
    register_clamp();
    Model model = make_problem_model(parse_problem("clamp", "r4w6+residual"), 1, 1);
    EXPECT_EQ(steps_of(model, 2, 1).size(), 1u);
    OpNode& clamp = model.ops[0];
    clamp.direction = Direction::bwd;
    clamp.inputs.push_back(clamp.inputs[0]);
    EXPECT_THROW(steps_of(model, 2, 1), Unsupported);
    const std::vector<StepOfModel> apart = steps_of(model, 1, 1);
    EXPECT_EQ(apart.at(0).step, parse_problem("clamp", "r4w6", Direction::bwd));
    EXPECT_EQ(apart.at(1).step, parse_problem("residual", "r4w6"));
}

template <class T>
std::string refusal(UserOp<T> op) {
    return error_line<std::invalid_argument>([&] { register_op<T>(std::move(op)); });
}

/// Clamp under another name.
struct SecondClamp : Clamp {
    static SecondClamp parse(ShapeText&) { return {}; }
};
struct OwnGemm : SecondClamp {
    static constexpr std::string_view kind = "gemm";
    static OwnGemm parse(ShapeText&) { return {}; }
};
struct TwoWords : SecondClamp {
    static constexpr std::string_view kind = "two words";
    static TwoWords parse(ShapeText&) { return {}; }
};
struct Nameless : SecondClamp {
    static constexpr std::string_view kind = "";
    static Nameless parse(ShapeText&) { return {}; }
};
struct Unexpected : SecondClamp {
    static constexpr std::string_view kind = "unexpected";
    static Unexpected parse(ShapeText&) { return {}; }
};

TEST(RegisterOp, RefusesNamesThatAreTakenOrThatNoOptionCouldGive) {
    register_clamp();
    const std::size_t before = op_kinds().size();
    const auto anything = [](const auto&, const reference::Question&) -> std::vector<reference::Expected> {
        return {};
    };
    EXPECT_EQ(refusal<Clamp>({.expected = anything}), "there is an op kind 'clamp' already");
    EXPECT_EQ(refusal<SecondClamp>({.expected = anything}), "there is an op kind 'clamp' already");
    EXPECT_EQ(refusal<OwnGemm>({.expected = anything}), "there is an op kind 'gemm' already");
    EXPECT_THAT(refusal<TwoWords>({.expected = anything}), HasSubstr("cannot be called 'two words'"));
    EXPECT_THAT(refusal<Nameless>({.expected = anything}), HasSubstr("cannot be called ''"));
    EXPECT_EQ(refusal<Unexpected>({}), "op kind 'unexpected' has no function `expected`");
    EXPECT_EQ(op_kinds().size(), before);
    EXPECT_EQ(find_op_kind("gemm"), &op_kind<Gemm>()) << "kbench's own stays";
}

}  // namespace
}  // namespace kbench
