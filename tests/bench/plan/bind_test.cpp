// Rows from functions whose parameters name their operands.
#include "bench/plan/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <type_traits>

#include "bench/plan/provider.h"
#include "models/ops/list.h"
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
    bound("test", function, step, Precision::fp32)->run(pointers, &memory[15], nullptr);
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

TEST(Bind, GivesTheOpItsTypeStridesAndTheWorkspace) {
    static std::int64_t width, stride;
    static DataType type;
    const auto function = +[](DataType t, const LayerNorm& op, Stride<"x"> of_x, In<"x"> x, In<"weight"> weight,
                              In<"bias"> bias, Out<"out"> out, void* workspace) {
        type = t;
        width = op.width;
        stride = of_x;
        got() = {x, weight, bias, out.data(), workspace};
    };
    EXPECT_THAT(operands_got(function, norm), ElementsAre(0, 1, 2, 3, 15));
    EXPECT_EQ(type, DataType::fp32);
    EXPECT_EQ(width, 8);
    EXPECT_EQ(stride, 8);
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
                  +[](In<"x">, In<"weight">, In<"bias">, In<"out">) {}, norm),
              "operand out of the step is written");
    EXPECT_EQ(refusal(
                  +[](Out<"x">, In<"weight">, In<"bias">, Out<"out">) {}, norm),
              "operand x of the step is only read");
}

/// Every row of every CPU provider that is bound takes all operands of its example, or making it would throw.
TEST(Bind, EveryRowOfTheCpuTakesTheOperandsOfItsExample) {
    std::size_t made = 0;
    for (const auto& provider : make_providers(BackendKind::cpu, {}))
        for (const OpKind* kind : op_kinds())
            for (const Direction direction : kind->directions)
                for (const Precision precision : all_precisions) {
                    if (provider->lacks && !provider->lacks(precision).empty()) continue;
                    const Step step = parse_problem(kind->name, example_shape(*kind), direction);
                    if (!provider->unsupported(step, precision).empty()) continue;
                    EXPECT_NO_THROW(provider->make(step, precision)) << provider->name << " " << kind->name;
                    ++made;
                }
    EXPECT_GT(made, 150);
}

}  // namespace
}  // namespace kbench
