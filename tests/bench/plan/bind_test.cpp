// Rows from functions whose parameters name their operands.
#include "bench/plan/bind.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

using testing::ElementsAre;

// A swapped pair does not compile.
static_assert(!std::is_convertible_v<In<"x">, In<"weight">>);
static_assert(!std::is_convertible_v<Out<"out">, Out<"sum">>);
static_assert(!std::is_convertible_v<In<"x">, Out<"x">>);
static_assert(!std::is_convertible_v<In<"bias?">, In<"bias">>, "what may be missing is asked for first");
static_assert(std::is_convertible_v<In<"bias">, In<"bias?">>);
static_assert(std::is_convertible_v<float*, In<"x">>, "tests have arrays and no step");
static_assert(!std::is_convertible_v<double*, In<"tokens", std::int32_t>>);

using Pointers = std::vector<const void*>;
/// What the last call got.
Pointers& got() {
    static Pointers pointers;
    return pointers;
}

const Step norm = Step::of(LayerNorm{4, 8});
const Step norm_of_sum{{ResidualAdd{4, 8}, LayerNorm{4, 8}}, 1};

/// Runs `function` on a step whose operand number i is at memory + i.
template <class... Parameters>
std::vector<std::ptrdiff_t> operands_got(void (*function)(Parameters...), const Step& step) {
    static std::array<char, 16> memory;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < operands(step, Precision::fp32).size(); ++i) pointers.push_back(&memory[i]);
    bound("test", function, step, Precision::fp32)->run({pointers, &memory[15], &memory[14]});
    std::vector<std::ptrdiff_t> numbers;
    for (const void* pointer : got())
        numbers.push_back(pointer == nullptr ? -1 : static_cast<const char*>(pointer) - memory.data());
    return numbers;
}

TEST(Bind, FindsOperandsByNameInWhateverOrder) {
    const auto backwards = +[](Out<"out"> out, In<"bias"> bias, In<"weight"> weight, In<"x"> x) {
        got() = {x, weight, bias, out.data()};
    };
    EXPECT_THAT(operands_got(backwards, norm), ElementsAre(0, 1, 2, 3));
}

TEST(Bind, GivesNullForAnOperandThatTheStepLacks) {
    const auto function =
        +[](In<"x"> x, In<"residual?"> residual, In<"weight"> weight, In<"bias"> bias, Out<"out"> out) {
            got() = {x, residual, weight, bias, out.data()};
        };
    EXPECT_THAT(operands_got(function, norm), ElementsAre(0, -1, 1, 2, 3));
    EXPECT_THAT(operands_got(function, norm_of_sum), ElementsAre(0, 1, 2, 3, 4));
}

/// Both masks of a step have lengths; each function's parameter takes the next.
TEST(Bind, GivesOperandsOfOneNameInTheirOrder) {
    const Step masks{{TimeMask{2, 4, 8, 1}, TimeMask{2, 4, 8, 1}}, 0};
    const auto function =
        +[](In<"lengths", std::int32_t> first, Out<"out"> out, In<"lengths", std::int32_t> second, In<"x"> x) {
            got() = {first.data(), second.data(), x, out.data()};
        };
    EXPECT_THAT(operands_got(function, masks), ElementsAre(1, 2, 0, 3));
}

TEST(Bind, GivesTheOpItsTypeStridesTheWorkspaceAndTheStream) {
    static std::int64_t k, stride;
    static DataType type;
    static Precision precision;
    const auto function = +[](DataType t, Precision p, const Gemm& op, Stride<"out"> of_out, In<"x"> x, In<"w"> w,
                              Out<"out"> out, void* workspace, CUstream_st* stream) {
        type = t;
        precision = p;
        k = op.k;
        stride = of_out;
        got() = {x, w, out.data(), workspace, stream};
    };
    Step padded = Step::of(Gemm{.m = 4, .n = 5, .k = 8, .weight_transposed = true});
    padded.padded_columns = 16;
    EXPECT_THAT(operands_got(function, padded), ElementsAre(0, 1, 2, 15, 14));
    EXPECT_EQ(type, DataType::fp32);
    EXPECT_EQ(precision, Precision::fp32);
    EXPECT_EQ(k, 8);
    EXPECT_EQ(stride, 16);
}

template <class... Parameters>
std::string refusal(void (*function)(Parameters...), const Step& step) {
    try {
        bound("test", function, step, Precision::fp32);
    } catch (const std::logic_error& error) {
        return error.what();
    }
    return "";
}

TEST(Bind, RefusesAFunctionThatIsNotOfTheStep) {
    EXPECT_EQ(refusal(
                  +[](In<"x">, In<"weight">, In<"bias">, In<"scale">, Out<"out">) {}, norm),
              "the step has no operand scale");
    EXPECT_EQ(refusal(
                  +[](In<"x">, In<"weight">, Out<"out">) {}, norm),
              "operand bias of the step is not taken");
    EXPECT_EQ(refusal(
                  +[](In<"x">, In<"weight">, In<"weight">, In<"bias">, Out<"out">) {}, norm),
              "the step has no operand weight");
    EXPECT_EQ(refusal(
                  +[](In<"x">, In<"weight">, In<"bias">, In<"out">) {}, norm),
              "operand out of the step is written");
    EXPECT_EQ(refusal(
                  +[](Out<"x">, In<"weight">, In<"bias">, Out<"out">) {}, norm),
              "operand x of the step is only read");
}

/// What orders operands otherwise: fused ops, results that are kept, sums that are accumulated, training.
std::vector<Step> unusual_steps() {
    std::vector<Step> steps{norm_of_sum, {{ResidualAdd{4, 8}, LayerNorm{4, 8}}, 1, Direction::fwd, 0, false, {0}}};
    for (const auto& [op, shape, direction] : {std::tuple{"layernorm", "r4w8a", Direction::bwd},
                                               {"rmsnorm", "r4w8a", Direction::bwd},
                                               {"bias", "r4w8a", Direction::bwd},
                                               {"gemm", "m4n8k8ta", Direction::wgrad},
                                               {"gemm", "m4n8k8t", Direction::dgrad},
                                               {"lstm", "t4n2h8s", Direction::fwd},
                                               {"gru", "t4n2h8s", Direction::bwd},
                                               {"gru", "t4n2h8a", Direction::wgrad},
                                               {"rnn", "t4n2h8", Direction::bwd}})
        steps.push_back(parse_problem(op, shape, direction));
    steps.push_back({{LayerNorm{4, 8, 1e-5, true}, ResidualAdd{4, 8}}, 0, Direction::bwd});
    return steps;
}

/// Those, and each kind's example in each direction.
std::vector<Step> all_steps() {
    std::vector<Step> steps = unusual_steps();
    for (const OpKind* kind : op_kinds())
        for (const Direction direction : kind->directions)
            steps.push_back(parse_problem(kind->name, example_shape(*kind), direction));
    return steps;
}

/// Or making the computation would throw std::logic_error.
TEST(Bind, RowsOfTheCpuTakeTheOperandsOfTheirSteps) {
    const std::vector<Step> steps = all_steps();
    std::vector<int> made(steps.size());
    for (const auto& provider : make_providers(BackendKind::cpu, {}))
        for (std::size_t i = 0; i < steps.size(); ++i)
            for (const Precision precision : all_precisions) {
                if (!provider->unsupported(steps[i], precision).empty()) continue;
                EXPECT_NO_THROW(provider->make(steps[i], precision)) << provider->name << " " << shape_text(steps[i]);
                ++made[i];
            }
    for (std::size_t i = 0; i < steps.size(); ++i)
        EXPECT_GT(made[i], 1) << op_name(steps[i]) << " " << shape_text(steps[i]) << " by the reference alone";
}

#ifdef KBENCH_HAVE_CUDA
/// Products, and what asks how many SMs there are, can be made only where a GPU is.
TEST(Bind, RowsOfTheGpuTakeTheOperandsOfTheirSteps) {
    std::set<std::string> made;
    for (const auto& provider : make_providers(BackendKind::cuda, {}))
        for (const Step& step : all_steps())
            for (const Precision precision : all_precisions) {
                if (!provider->unsupported(step, precision).empty()) continue;
                try {
                    provider->make(step, precision);
                    made.insert(fmt::format("{} {} {}", provider->name, name(step.direction), op_name(step)));
                } catch (const std::logic_error& mistake) {
                    ADD_FAILURE() << provider->name << " " << shape_text(step) << ": " << mistake.what();
                } catch (const Error&) {  // there is no device
                }
            }
    for (const char* kind :
         {"fwd embedding", "bwd embedding",   "fwd layernorm", "fwd rmsnorm",       "fwd bias",
          "fwd gelu",      "bwd gelu",        "fwd residual",  "bwd residual",      "fwd attention",
          "bwd attention", "fwd scale_mask",  "fwd softmax",   "fwd cross_entropy", "bwd cross_entropy",
          "fwd ctc",       "bwd ctc",         "fwd batchnorm", "bwd batchnorm",     "fwd hardtanh",
          "bwd hardtanh",  "fwd time_mask",   "bwd time_mask", "fwd to_sequence",   "bwd to_sequence",
          "fwd conv2d",    "fwd global_norm", "fwd adamw"})
        EXPECT_TRUE(made.contains(fmt::format("native {}", kind))) << kind;
}
#endif

}  // namespace
}  // namespace kbench
