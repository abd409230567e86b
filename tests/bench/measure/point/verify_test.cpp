// What verification asks of masked and of twice rounded values. That it finds wrong kernels: run_test,
// user_kernel_test.
#include "bench/measure/point/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/measure/point/device_rows.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "kbench/kernel.h"
#include "models/ops/list.h"
#include "models/problem.h"
#include "tests/bench/accumulating_steps.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

class VerifyStep : public testing::Test {
  protected:
    VerifiedStep verify(const Step& step, const Computation& computation, Precision precision, std::uint64_t seed = 1) {
        return verify_step({&step, &computation, "test", "layer"}, precision, *device_, seed);
    }
    /// `step` as kbench's own CPU kernels compute it.
    static std::unique_ptr<Computation> native(const Step& step, Precision precision) {
        for (const auto& provider : make_providers(BackendKind::cpu, {}))
            if (provider->name == "native") return provider->make(step, precision);
        return nullptr;
    }

    std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(VerifyStep, MaskedScoresAreMinusInfinityAndNothingElse) {
    const AttentionShape shape{1, 2, 8, 16};
    const Step step = Step::of(ScaleMask{shape, 0.25, false});
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16}) {
        const VerifiedStep verified = verify(step, *native(step, precision), precision);
        EXPECT_EQ(verified.elements_checked, 2 * 8 * 8) << name(precision);
    }
    const auto finite = make_computation("finite", [](const Call& call) {
        OperandCursor in(call.operands);
        auto* scores = in.next<float>();
        for (int row = 0; row < 2 * 8; ++row)
            for (int column = 0; column < 8; ++column)
                scores[row * 8 + column] = column > row % 8 ? -1e30f : 0.25f * scores[row * 8 + column];
    });
    EXPECT_THAT(error_line<MeasurementError>([&] { verify(step, *finite, Precision::fp32); }),
                testing::HasSubstr("the reference says -inf"));
}

TEST_F(VerifyStep, SequencesAreOfOtherLengthsThanTheUsualFullOne) {
    const Step mask = Step::of(TimeMask{4, 3, 50, 2});
    EXPECT_EQ(verify(mask, *native(mask, Precision::fp32), Precision::fp32).elements_checked, 4 * 3 * 50);
    const auto blind = make_computation("blind", [](const Call& call) {
        OperandCursor in(call.operands);
        const auto* x = in.next<const float>();
        in.next();
        std::copy_n(x, 4 * 3 * 50, in.next<float>());
    });
    EXPECT_THAT(error_line<MeasurementError>([&] { verify(mask, *blind, Precision::fp32); }),
                testing::HasSubstr("the reference says 0"));
    const auto all_masked = make_computation("all masked", [](const Call& call) {
        OperandCursor in(call.operands);
        in.next();
        in.next();
        std::fill_n(in.next<float>(), 4 * 3 * 50, 0.0f);
    });
    EXPECT_THAT(error_line<MeasurementError>([&] { verify(mask, *all_masked, Precision::fp32); }),
                testing::HasSubstr("out[0, 0] is 0,"))
        << "the first is full";
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::fp16})
        for (const Step& layer :
             {Step::of(Lstm{{30, 3, 40, 2}}), Step::of(Gru{{30, 3, 40}}), Step::of(Rnn{{30, 3, 40}})})
            EXPECT_EQ(verify(layer, *native(layer, precision), precision).elements_checked, 2 * 30 * 3 * 40);
}

TEST_F(VerifyStep, EveryProviderAddsToGradientsThatAreThere) { verify_accumulating_steps(*device_); }

TEST_F(VerifyStep, AGradientThatIsNotAddedToWhatIsThereShows) {
    const Step gemm = Step::of(Gemm{100, 283, 64, false, true}, Direction::wgrad),
               bias = Step::of(BiasAdd{100, 283, true}, Direction::bwd);
    for (const auto& provider : make_providers(BackendKind::cpu, {})) {
        const Step overwriting_gemm = Step::of(Gemm{100, 283, 64}, Direction::wgrad),
                   overwriting_bias = Step::of(BiasAdd{100, 283}, Direction::bwd);
        for (const auto& [step, other] : {std::pair{&gemm, &overwriting_gemm}, {&bias, &overwriting_bias}}) {
            if (!provider->unsupported(*other, Precision::fp32).empty()) continue;
            const auto wrong = provider->make(*other, Precision::fp32);
            EXPECT_THROW(verify(*step, *wrong, Precision::fp32), MeasurementError) << provider->name;
        }
    }
}

TEST_F(VerifyStep, StepsThatWorkInPlaceOnSomeAndMakeOthersAreVerifiedAsAWhole) {
    const auto reference = [](const Step& step, Precision precision) -> std::unique_ptr<Computation> {
        for (const auto& provider : make_providers(BackendKind::cpu, {}))
            if (provider->name == "reference") return provider->make(step, precision);
        return nullptr;
    };
    struct Case {
        const char *op, *shape;
        Direction direction;
        std::int64_t elements;
    };
    const Case cases[] = {{"cross_entropy", "r6v50s3", Direction::fwd, 6},
                          {"cross_entropy", "r6v50s3", Direction::bwd, 6 * 50 + 6},
                          {"embedding", "r6w20v9s3", Direction::bwd, 9 * 20 + 3 * 20},
                          {"embedding", "r6w20v9s3a", Direction::bwd, 9 * 20 + 3 * 20},
                          {"global_norm", "n1000t3", Direction::fwd, 1},
                          {"adamw", "n1000t3", Direction::fwd, 3 * 1000},
                          {"adamw", "n1000t3mc", Direction::fwd, 4 * 1000}};
    for (const auto& [op, shape, direction, elements] : cases)
        for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16}) {
            SCOPED_TRACE(testing::Message() << op << " " << shape << " " << name(precision));
            const Step step = parse_problem(op, shape, direction);
            EXPECT_EQ(verify(step, *native(step, precision), precision).elements_checked, elements);
            EXPECT_EQ(verify(step, *reference(step, precision), precision).elements_checked, elements);
        }
}

/// Steps of training that a GEMM heads, and what of them somebody may forget.
TEST_F(VerifyStep, OfGradientsThatGoAlongWithAProductWhatIsForgottenIsFound) {
    const auto of_cpu = [](std::string_view provider, const Step& step, Precision precision) {
        for (const auto& candidate : make_providers(BackendKind::cpu, {}))
            if (candidate->name == provider) return candidate->make(step, precision);
        return std::unique_ptr<Computation>();
    };
    const Step with_bias = parse_problem("gemm", "m100n48k64+bias", Direction::wgrad),
               with_gelu = parse_problem("gemm", "m100n48k64+gelu", Direction::dgrad);
    Step kept = parse_problem("gemm", "m100n48k64+bias+gelu");
    kept.kept = {1};
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        SCOPED_TRACE(name(precision));
        for (const Step& step : {with_bias, with_gelu, kept})
            EXPECT_NO_THROW(verify(step, *of_cpu("reference", step, precision), precision)) << shape_text(step);
        const auto error = [&](const Step& step, const Computation& computation) {
            return error_line<MeasurementError>([&] { verify(step, computation, precision); });
        };
        const std::unique_ptr<Computation> wgrad =
            of_cpu("reference", Step::of(with_bias.head_op(), Direction::wgrad), precision);
        const auto without_bias = make_computation("planted", [&](const Call& call) {
            OperandCursor in(call.operands);
            void *x = in.next(), *dy = in.next(), *db = in.next();
            std::memset(db, 0, 48 * size_of(storage_type(precision)));
            void* const pointers[] = {x, dy, in.next()};
            wgrad->run({pointers, nullptr, nullptr});
        });
        EXPECT_THAT(error(with_bias, *without_bias), testing::HasSubstr("db["));
        const std::unique_ptr<Computation> dgrad =
            of_cpu("reference", Step::of(with_gelu.head_op(), Direction::dgrad), precision);
        const auto without_slope = make_computation("planted", [&](const Call& call) {
            OperandCursor in(call.operands);
            void *dy = in.next(), *w = in.next();
            in.next();
            void* const pointers[] = {dy, w, in.next()};
            dgrad->run({pointers, nullptr, nullptr});
        });
        EXPECT_THAT(error(with_gelu, *without_slope), testing::HasSubstr("dx["));
        Step plain = kept;
        plain.kept = {};
        const std::unique_ptr<Computation> forward = of_cpu("reference", plain, precision);
        const auto keeps_the_result = make_computation("planted", [&](const Call& call) {
            OperandCursor in(call.operands);
            void *x = in.next(), *w = in.next(), *bias = in.next(), *sum = in.next(), *out = in.next();
            void* const pointers[] = {x, w, bias, out};
            forward->run({pointers, nullptr, nullptr});
            std::memcpy(sum, out, 100 * 48 * size_of(storage_type(precision)));
        });
        EXPECT_THAT(error(kept, *keeps_the_result), testing::HasSubstr("sum["));
    }
}

TEST_F(VerifyStep, AnArrayWorkedOnInPlaceThatIsLeftAsItWasIsFound) {
    for (const char* shape : {"n1000t3", "n1000t3mc"}) {
        const Step step = parse_problem("adamw", shape);
        const auto idle = make_computation("idle", [](const Call&) {});
        EXPECT_THAT(error_line<MeasurementError>([&] { verify(step, *idle, Precision::fp32); }),
                    testing::HasSubstr("weight0[0, 0] is"));
    }
}

/// Most tokens of a vocabulary do not occur: some of those that do must be among what is compared.
TEST_F(VerifyStep, AnEmbeddingsGradientThatIsNotAddedIsFound) {
    const Embedding op{256, 256, 64, 50257, 256, true};
    const auto positions_alone = make_computation("planted", [](const Call& call) {
        OperandCursor in(call.operands);
        in.next();
        const auto* dout = in.next<const float>();
        in.next();
        std::copy_n(dout, 256 * 64, in.next<float>());
    });
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const Step step = Step::of(op, Direction::bwd);
        EXPECT_THAT(error_line<MeasurementError>([&] { verify(step, *positions_alone, Precision::fp32, seed); }),
                    testing::HasSubstr("dwte["))
            << seed;
    }
}

TEST_F(VerifyStep, SecondMomentsOfOtherElementsAreFound) {
    const Step step = parse_problem("adamw", "n1000t1");
    const std::unique_ptr<Computation> right = native(step, Precision::fp32);
    const auto shifted = make_computation("planted", [&](const Call& call) {
        OperandCursor in(call.operands);
        std::vector<void*> operands;
        for (int i = 0; i < 5; ++i) operands.push_back(in.next());
        auto* v = static_cast<float*>(operands[4]);
        std::rotate(v, v + 1, v + 1000);
        right->run({operands, nullptr, nullptr});
    });
    EXPECT_THAT(error_line<MeasurementError>([&] { verify(step, *shifted, Precision::fp32); }),
                testing::HasSubstr("verification failed"));
}

TEST_F(VerifyStep, HundredsOfResultsShareWhatOneStepMayCost) {
    const Step step = parse_problem("adamw", "n3000000t150");  // 20,000 elements each, times three
    const VerifiedStep verified = verify(step, *native(step, Precision::fp32), Precision::fp32);
    EXPECT_EQ(verified.elements_total, 9'000'000);
    EXPECT_GT(verified.elements_checked, 450 * 256);
    EXPECT_LT(verified.elements_checked, 1 << 21);
}

/// A softmax in fp64 whose results are all too large by `units` of the last place's half.
std::unique_ptr<Computation> softmax_off_by(double units, int roundings) {
    const auto run = [units](const Call& call) {
        OperandCursor in(call.operands);
        const auto* scores = in.next<const double>();
        auto* out = in.next<double>();
        for (int row = 0; row < 4; ++row) {
            long double sum = 0;
            for (int i = 0; i < 16; ++i) sum += std::exp(static_cast<long double>(scores[row * 16 + i]));
            for (int i = 0; i < 16; ++i) {
                const long double right = std::exp(static_cast<long double>(scores[row * 16 + i])) / sum;
                out[row * 16 + i] = static_cast<double>(right * (1 + units * unit_roundoff(DataType::fp64)));
            }
        }
    };
    return make_computation("softmax", run, roundings);
}

/// A sum that is right but for one element of the last row.
std::unique_ptr<Computation> sum_with(float last_element, std::int64_t count) {
    return make_computation("sum", [=](const Call& call) {
        OperandCursor in(call.operands);
        const auto* x = in.next<const float>();
        const auto* residual = in.next<const float>();
        auto* out = in.next<float>();
        for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] + residual[i];
        if (last_element != 0) out[count - 7] = last_element;
    });
}

TEST_F(VerifyStep, EveryResultOfABackwardIsChecked) {
    const auto elements = [&](std::string_view op, std::string_view shape) {
        std::int64_t checked = 0;
        for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16}) {
            const Step step = parse_problem(op, shape, Direction::bwd);
            const std::int64_t now = verify(step, *native(step, precision), precision).elements_checked;
            EXPECT_TRUE(checked == 0 || checked == now) << op << " " << shape << " in " << name(precision);
            checked = now;
        }
        return checked;
    };
    EXPECT_EQ(elements("layernorm", "r20w30"), 20 * 30 + 2 * 30);
    EXPECT_EQ(elements("layernorm", "r20w30+residual"), 20 * 30 + 2 * 30);
    EXPECT_EQ(elements("rmsnorm", "r20w30"), 20 * 30 + 30);
    EXPECT_EQ(elements("bias", "r20w30"), 30);
    EXPECT_EQ(elements("gelu", "r20w30"), 20 * 30);
    EXPECT_EQ(elements("residual", "r20w30"), 20 * 30);
}

TEST_F(VerifyStep, OutputsOfADeviceAreSeenWhole) {
    OtherDevice device;
    device.apart = true;
    // 68 MB of output, so more than a slab.
    constexpr std::int64_t rows = 17'000, width = 1'000;
    const Step step = Step::of(ResidualAdd{rows, width});
    const auto verdict = [&](float last_element) {
        const auto computation = sum_with(last_element, rows * width);
        return verify_step({&step, computation.get(), "test", "layer"}, Precision::fp32, device, 1);
    };
    EXPECT_GT(verdict(0).elements_checked, 4000);
    EXPECT_LE(device.largest_download, static_cast<std::size_t>(slab_bytes));
    EXPECT_THAT(error_line<MeasurementError>([&] { verdict(std::nanf("")); }),
                testing::HasSubstr("out[16999, 993] was not written, or is not a number"));
}

TEST_F(VerifyStep, FurtherRoundingsWidenTheBound) {
    const Step step = Step::of(Softmax{4, 16, false});
    const double bound_of_one = verify(step, *softmax_off_by(0, 1), Precision::fp64).bound_there;
    ASSERT_GT(bound_of_one, 0);
    // The first error that one rounding does not allow, to within a rounding of its own.
    double units = 1;
    while (true) {
        try {
            verify(step, *softmax_off_by(units, 1), Precision::fp64);
        } catch (const MeasurementError&) {
            break;
        }
        ++units;
        ASSERT_LT(units, 1000) << "no error is too large";
    }
    EXPECT_NO_THROW(verify(step, *softmax_off_by(units, 3), Precision::fp64));
    EXPECT_THROW(verify(step, *softmax_off_by(units + 4, 3), Precision::fp64), MeasurementError);
}

/// A copy whose reference is said to be dear and shared by four columns: only some elements are asked for.
struct DearCopy {
    static constexpr std::string_view kind = "dear_copy", what = "a copy", example = "r4w6";
    static constexpr Direction directions[] = {Direction::fwd};
    std::int64_t rows, width;
    bool operator==(const DearCopy&) const = default;
    static DearCopy parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const { return {input("x", rows, width), output("out", rows, width)}; }
    Work work(Direction) const { return {}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
};

TEST_F(VerifyStep, GroupsOfElementsEndWithTheirRow) {
    static const bool registered =
        register_op<DearCopy>({.expected =
                                   [](const DearCopy&, reference::Question q) {
                                       const reference::View x = q.next();
                                       std::vector<reference::Expected> values;
                                       for (const auto& [row, column] : q.elements)
                                           values.push_back({x(row, column), std::abs(x(row, column)), 1});
                                       return values;
                                   },
                               .cost =
                                   [](const DearCopy&) {
                                       return reference::ElementCost{1e9, 4};
                                   }});
    ASSERT_TRUE(registered);
    for (const std::int64_t width : {3, 4, 6}) {
        const Step step = Step::of(DearCopy{5, width});
        const auto copy = [width](float added_to_the_last) {
            return make_computation("copy", [=](const Call& call) {
                OperandCursor in(call.operands);
                const auto* x = in.next<const float>();
                auto* out = in.next<float>();
                std::copy_n(x, 5 * width, out);
                out[5 * width - 1] += added_to_the_last;
            });
        };
        EXPECT_EQ(verify(step, *copy(0), Precision::fp32).elements_checked, 5 * width);
        EXPECT_THAT(error_line<MeasurementError>([&] { verify(step, *copy(1), Precision::fp32); }),
                    testing::HasSubstr("out[4, " + std::to_string(width - 1) + "] is"));
    }
}

}  // namespace
}  // namespace kbench
