// Whole runs on the CPU: real plans of a small GPT-2, their logits against the reference provider's, and what is
// recorded.
#include "bench/measure/sweep/run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/result/result_json.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/device_support.h"
#include "bench/plan/plan.h"
#include "cpu/reference/reference.h"
#include "kbench/error.h"
#include "models/cost.h"
#include "models/ops/list.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// Logits of one forward with all ops by the providers of `choice`.
std::vector<float> logits(AttentionKind attention, Precision precision, const ProviderChoice& choice) {
    const Model model = make_gpt2(small_config(), 2, 33, attention);
    const auto providers = make_providers(BackendKind::cpu, {});
    Plan plan(model, precision, assign_steps(model, precision, providers, choice, 1));
    RandomWeights weights(5);
    plan.allocate(cpu(), weights);
    for (const TensorId id : model.inputs) plan.set_input(id, input_bytes(model.tensors[id], plan.operand(id), "", 5));
    for (std::size_t s = 0; s < plan.steps().size(); ++s) plan.run_step(s, nullptr);
    const TensorId output = model.outputs.at(0);
    const Operand& operand = plan.operand(output);
    const reference::View view{plan.address(output), operand.type, operand.rows, operand.columns, operand.stride};
    std::vector<float> values;
    for (std::int64_t r = 0; r < view.rows; ++r)
        for (std::int64_t c = 0; c < view.columns; ++c) values.push_back(static_cast<float>(view(r, c)));
    return values;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& right) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
        difference += std::pow(static_cast<double>(got[i]) - right[i], 2);
        norm += std::pow(static_cast<double>(right[i]), 2);
    }
    return std::sqrt(difference / norm);
}

struct Case {
    Precision precision;
    AttentionKind attention;
    double bound;
};

class WholeModel : public testing::TestWithParam<Case> {};

TEST_P(WholeModel, GivesTheReferencesLogits) {
    const Case& c = GetParam();
    if (const std::string why = unsupported(cpu(), c.precision); !why.empty()) GTEST_SKIP() << why;
    const std::vector<float> right = logits(AttentionKind::fused, Precision::fp64, {{"*", "reference"}});
    const double error = relative_error(logits(c.attention, c.precision, {}), right);
    EXPECT_LT(error, c.bound);
    if (c.precision != Precision::fp64) {
        EXPECT_GT(error, 0) << "another precision cannot give the same bits";
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, WholeModel,
                         testing::Values(Case{Precision::fp64, AttentionKind::fused, 1e-7},
                                         Case{Precision::fp64, AttentionKind::unfused, 1e-7},
                                         Case{Precision::fp32, AttentionKind::fused, 2e-6},
                                         Case{Precision::fp32, AttentionKind::unfused, 2e-6},
                                         Case{Precision::bf16, AttentionKind::fused, 2e-2},
                                         Case{Precision::bf16, AttentionKind::unfused, 2e-2},
                                         Case{Precision::fp16, AttentionKind::fused, 3e-3},
                                         Case{Precision::fp16, AttentionKind::unfused, 3e-3}),
                         [](const testing::TestParamInfo<Case>& test) {
                             return fmt::format("{}_{}", name(test.param.precision),
                                                test.param.attention == AttentionKind::fused ? "fused" : "unfused");
                         });

TEST(Run, RecordsVerifiedTimedStepsThatCoverTheModel) {
    const TemporaryDirectory directory;
    Result result;
    Progress progress;
    run_points(small_run(directory / ""), cpu(), cpu_profiler(), result, progress);
    ASSERT_EQ(result.points.size(), 1u);
    const Point& p = result.points[0];
    EXPECT_EQ(p.status, PointStatus::done);
    EXPECT_GE(p.end_to_end.value().latency.samples_ms.size(), 3u);
    EXPECT_FALSE(p.verification.steps.empty());
    std::size_t ops = 0;
    double flops = 0;
    for (const StepResult& s : p.steps) {
        ops += s.absorbs.size();
        flops += s.cost.flops;
        ASSERT_TRUE(s.time_us.has_value());
        EXPECT_GT(s.time_us->median, 0) << s.layer;
    }
    EXPECT_EQ(ops, make_gpt2(small_config(), 2, 33, AttentionKind::fused).ops.size());
    EXPECT_DOUBLE_EQ(flops, p.cost.flops);
    EXPECT_EQ(p.compulsory_bytes.value(),
              compulsory_bytes(make_gpt2(small_config(), 2, 33, AttentionKind::fused), p.precision()));
    EXPECT_LT(*p.compulsory_bytes, p.cost.bytes());

    std::ifstream file(directory / "result.json");
    std::stringstream text;
    text << file.rdbuf();
    const Result read = parse_result(text.str(), "result.json");
    EXPECT_EQ(to_json(read), to_json(result));
}

TEST(Run, TheReferenceComputesOnlyWhatItIsAskedFor) {
    const Model model = make_gpt2(small_config(), 1, 8, AttentionKind::fused);
    const auto providers = make_providers(BackendKind::cpu, {});
    for (const AssignedStep& s : assign_steps(model, Precision::fp64, providers, {}, 1))
        EXPECT_NE(s.provider->name, "reference") << shape_text(s.step);
    for (const AssignedStep& s : assign_steps(model, Precision::fp64, providers, {{"layernorm", "reference"}}, 1))
        EXPECT_EQ(s.provider->name == "reference", op_name(s.step) == "layernorm");
}

TEST(Run, SweepsGoOnPastWhatTheMachineCannotDo) {
    const TemporaryDirectory directory;
    RunOptions options = small_run(directory / "");
    options.values["precision"] = {"tf32", "fp32"};
    Result result;
    Progress progress;
    run_points(options, cpu(), cpu_profiler(), result, progress);
    ASSERT_EQ(result.points.size(), 2u);
    EXPECT_EQ(result.points[0].status, PointStatus::skipped);
    EXPECT_THAT(result.points[0].reason, HasSubstr("tf32"));
    EXPECT_EQ(result.points[1].status, PointStatus::done);
}

TEST(Run, SaysWhatFitsWhenTheBatchDoesNot) {
    const TemporaryDirectory directory;
    RunOptions options = small_run(directory / "");
    options.values["batch"] = {100'000'000};
    Result result;
    Progress progress;
    run_points(options, cpu(), cpu_profiler(), result, progress);
    EXPECT_EQ(result.points[0].status, PointStatus::skipped);
    EXPECT_THAT(result.points[0].reason, HasSubstr("the largest batch that fits is"));
}

Result run_with(OtherProfiler& profiler, const std::filesystem::path& out) {
    Result result;
    Progress progress;
    run_points(small_run(out), cpu(), profiler, result, progress);
    return result;
}

TEST(RunCounters, TimingStandsAloneWhereNothingCanBeCounted) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    profiler.count_ranges = [](std::size_t) -> RangeCounters {
        throw DeviceError("no permission to read the GPU's counters (ERR_NVGPUCTRPERM): run as root");
    };
    const Result result = run_with(profiler, directory / "");
    const Point& point = result.points.at(0);
    EXPECT_EQ(point.status, PointStatus::done);
    EXPECT_TRUE(point.end_to_end);
    EXPECT_THAT(point.counters.unavailable, HasSubstr("ERR_NVGPUCTRPERM"));
    for (const StepResult& step : point.steps) EXPECT_TRUE(step.counters.empty());
}

TEST(RunCounters, StepsWhoseKernelsChangedLoseTheirsAndSayWhy) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    profiler.count_ranges = [](std::size_t ranges) {
        RangeCounters counters;
        counters.by_range.assign(ranges, {{"ipc", 1.5}});
        counters.discarded.assign(ranges, "");
        counters.discarded[1] = "the kernels of counter pass 2 were not those of the timing run";
        counters.warning = "counters are by call";
        return counters;
    };
    const Result result = run_with(profiler, directory / "");
    EXPECT_THAT(without_drift(result.warnings), ElementsAre(HasSubstr("counters are by call")));
    const std::vector<StepResult>& steps = result.points.at(0).steps;
    EXPECT_EQ(steps[0].counters.at("ipc"), 1.5);
    EXPECT_TRUE(steps[1].counters.empty());
    EXPECT_THAT(steps[1].counters_discarded, HasSubstr("pass 2"));
}

TEST(RunCounters, AStepInAnotherPrecisionThanAskedIsAWarning) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    profiler.count_ranges = [](std::size_t ranges) {
        RangeCounters counters;
        counters.by_range.assign(ranges, {{"tensor_pipe_active", 0}, {"tensor_tf32_ops", 0}});
        counters.by_range[2] = {{"tensor_pipe_active", 60}, {"tensor_tf32_ops", 4e6}};
        counters.discarded.assign(ranges, "");
        return counters;
    };
    const Result result = run_with(profiler, directory / "");
    const std::vector<std::string> warnings = without_drift(result.warnings);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_THAT(warnings[0], HasSubstr("fp32: 1 " + result.points[0].steps[2].op + " steps did not run as asked"));
    EXPECT_THAT(warnings[0], HasSubstr("asked for fp32, but tensor cores were active (tf32: 4.00 MFLOP)"));
}

TEST(RunCounters, EveryPointIsTimedWithNothingAttached) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    int points = 0;
    profiler.before_watch = [&] {
        ++points;
        EXPECT_EQ(std::exchange(profiler.detached, 0), 1) << "point " << points;
    };
    RunOptions options = small_run(directory / "");
    options.values["batch"] = {1, 2};
    Result result;
    Progress progress;
    run_points(options, cpu(), profiler, result, progress);
    EXPECT_EQ(result.points.size(), 2u);
    EXPECT_EQ(points, 2);
}

TEST(LargestBatch, IsTheLastThatFits) {
    const auto bytes = [](std::int64_t batch) { return 1000 + 10 * batch; };
    EXPECT_EQ(largest_batch(bytes, 1009), 0);
    EXPECT_EQ(largest_batch(bytes, 1010), 1);
    EXPECT_EQ(largest_batch(bytes, 1019), 1);
    EXPECT_EQ(largest_batch(bytes, 2000), 100);
    EXPECT_EQ(largest_batch(bytes, 1730), 73);
}

TEST(LargestBatch, IsFoundWithFewPlansWhateverTheShapeOfTheMemory) {
    const auto stairs = [](std::int64_t batch) { return 500 + 4096 * ((7 * batch + 99) / 100); };
    const auto bent = [](std::int64_t batch) { return batch < 300 ? 1000000 + batch : 1000300 + 5000 * (batch - 300); };
    const auto squares = [](std::int64_t batch) { return batch * batch; };
    const auto flat_at_first = [](std::int64_t batch) { return std::max<std::int64_t>(5000, 3 * batch); };
    int plans = 0;
    for (const std::function<std::int64_t(std::int64_t)>& shape :
         std::initializer_list<std::function<std::int64_t(std::int64_t)>>{stairs, bent, squares, flat_at_first})
        for (const std::int64_t available : {5000L, 1000299L, 1005299L, 123456789L, 150000000000L}) {
            plans = 0;
            const std::int64_t batch = largest_batch([&](std::int64_t n) { return ++plans, shape(n); }, available);
            EXPECT_LE(batch == 0 ? 0 : shape(batch), available);
            EXPECT_GT(shape(batch + 1), available);
            EXPECT_LT(plans, 30);
        }
    plans = 0;
    EXPECT_EQ(largest_batch([&](std::int64_t n) { return ++plans, 1000 + 7 * n; }, 123456), 17493);
    EXPECT_LE(plans, 5);
}

/// A GEMM that is right but for one element, or that leaves its last row unwritten.
class PlantedLie final : public Computation {
  public:
    enum class Kind { one_wrong_element, unwritten_row, rounded_inputs };
    PlantedLie(Kind kind, Gemm op) : kind_(kind), op_(op) {}
    std::string implementation() const override { return "lie"; }
    void run(const Call& call) const override {
        const auto* x = static_cast<const float*>(call.operands[0]);
        const auto* w = static_cast<const float*>(call.operands[1]);
        auto* out = static_cast<float*>(call.operands[2]);
        const std::int64_t m = op_.m, n = op_.n, k = op_.k;
        const auto rounded = [this](float value) {
            if (kind_ != Kind::rounded_inputs) return value;
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            bits = (bits + 0x1000u) & ~0x1fffu;  // to tf32's ten bits of mantissa
            std::memcpy(&value, &bits, sizeof bits);
            return value;
        };
        for (std::int64_t i = 0; i < (kind_ == Kind::unwritten_row ? m - 1 : m); ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l)
                    sum += static_cast<double>(rounded(x[i * k + l])) * rounded(w[l * n + j]);
                out[i * n + j] = static_cast<float>(sum);
            }
        if (kind_ == Kind::one_wrong_element) out[3 * n + 5] += 0.01f;
    }

  private:
    Kind kind_;
    Gemm op_;
};

std::string verdict(PlantedLie::Kind kind) {
    const Gemm op{40, 48, 256};
    const Step step = Step::of(op);
    const PlantedLie lie(kind, op);
    try {
        verify_step({&step, &lie, "liar", "h.0.attn.c_attn"}, Precision::fp32, cpu(), 1);
    } catch (const MeasurementError& error) {
        EXPECT_EQ(error.code(), ExitCode::failed);
        return error.what();
    }
    return "passed";
}

TEST(Verify, NamesStepElementValuesAndBoundOfAWrongElement) {
    const std::string line = verdict(PlantedLie::Kind::one_wrong_element);
    EXPECT_THAT(line, HasSubstr("gemm m40n48k256 of h.0.attn.c_attn by liar (lie), fp32: out[3, 5] is"));
    EXPECT_THAT(line, HasSubstr("the reference says"));
    EXPECT_THAT(line, HasSubstr("allowed error"));
}

TEST(Verify, FindsWhatWasNotWritten) { EXPECT_THAT(verdict(PlantedLie::Kind::unwritten_row), HasSubstr("out[39, ")); }

TEST(Verify, DoesNotTakeTf32ForFp32) {
    EXPECT_THAT(verdict(PlantedLie::Kind::rounded_inputs), HasSubstr("fp32: out["));
}

}  // namespace
}  // namespace kbench
