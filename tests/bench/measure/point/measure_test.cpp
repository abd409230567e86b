// The order of a measurement, its names, and the counters that must be there.
#include "bench/measure/point/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>

#include "bench/measure/sweep/planning.h"
#include "bench/plan/data/tokens.h"
#include "kbench/error.h"
#include "models/backward.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Change = std::function<void(PointOptions&, PartContext&)>;

/// A small GPT-2 measured on the CPU; `change` what is wanted of it. The parts in the order in which they began.
std::vector<std::string> parts(Point& point, const Change& change, Profiler& profiler = cpu_profiler(),
                               PointOptions options = small_run({}), Device& device = cpu(),
                               const testing::Matcher<std::vector<std::string>>& said = IsEmpty(),
                               const Model& model = make_gpt2(small_config(), 2, 33, AttentionKind::fused)) {
    const auto providers = make_providers(BackendKind::cpu, {});
    point.set("batch", 2);
    point.set("seq", 33);
    Plan plan = plan_point(model, assign_steps(model, Precision::fp32, providers, {}, 1), device, point, {});
    RandomWeights weights(1);
    std::vector<std::string> order, warnings;
    PartContext at{plan, device, profiler, options, weights, point, warnings};
    at.on_part = [&](const std::string& part) {
        const std::string first = part.substr(0, part.find(' '));
        if (order.empty() || order.back() != first) order.push_back(first);
    };
    change(options, at);
    measure(at);
    EXPECT_THAT(without_drift(warnings), said);
    return order;
}

TEST(Measure, VerifiesBeforeItTimesAndTimesBeforeItCounts) {
    Point point;
    EXPECT_THAT(
        parts(point, [](PointOptions&, PartContext&) {}),
        ElementsAre("verify", "weights", "prepare", "measure", "steps", "kernels", "outputs", "marginal", "counters"));
    EXPECT_FALSE(point.verification.steps.empty());
    EXPECT_TRUE(point.end_to_end);
}

/// Without it a kernel that multiplies less would be past the roof of what its op is defined as.
TEST(Planning, AStepSaysWhatItsComputationSpares) {
    Provider provider{.name = "sparing", .ops = {}};
    for (const OpKind* kind : op_kinds()) {
        const double spared = kind == &op_kind<Gemm>() ? 5 : 0;
        provider.ops.push_back({.kind = kind, .make = [spared](const Step&, Precision) {
                                    return make_computation(
                                        "sparing", [](const Call&) {}, 1, 0, spared);
                                }});
    }
    Providers providers;
    providers.push_back(std::make_unique<Provider>(std::move(provider)));
    const Model model = make_gpt2(small_config(), 2, 33, AttentionKind::fused);
    Point point;
    const Plan plan = plan_point(model, assign_steps(model, Precision::fp32, providers, {}, 1), cpu(), point, {});
    std::size_t sparing = 0;
    for (const StepResult& step : point.steps) {
        EXPECT_EQ(step.spared_flops, step.op == "gemm" ? std::optional(5.0) : std::nullopt) << step.op;
        EXPECT_EQ(step.needed_flops(), step.cost.flops - (step.op == "gemm" ? 5 : 0)) << step.op;
        sparing += step.spared_flops.has_value();
    }
    EXPECT_GT(sparing, 0u);
    EXPECT_LT(sparing, point.steps.size());
}

/// What a clock that runs in fixed steps says: a millisecond between the marks of `slow`, half of one after others.
class CountedEvent final : public DeviceEvent {
  public:
    CountedEvent(double& now_ms, bool slow) : now_ms_(now_ms), slow_(slow) {}
    void record() override { at_ms_ = now_ms_ += slow_ ? 1 : 0.5; }
    double ms_since(const DeviceEvent& earlier) const override {
        return at_ms_ - static_cast<const CountedEvent&>(earlier).at_ms_;
    }

  private:
    double& now_ms_;
    bool slow_;
    double at_ms_ = 0;
};

/// Under another profiler the intervals without work may be the long ones.
TEST(Measure, AStepThatTookNoLongerThanNothingHasNoTime) {
    OtherDevice device;
    double now_ms = 0;
    int events = 0;
    device.event = [&] { return std::make_unique<CountedEvent>(now_ms, events++ < 10); };
    Point point;
    parts(
        point, [](PointOptions&, PartContext& at) { at.verified.emplace(); }, cpu_profiler(), small_run({}), device,
        ElementsAre(HasSubstr("steps took no longer than an interval without work, 1000 us, and have no time")));
    for (const StepResult& step : point.steps) EXPECT_FALSE(step.time_us) << step.layer;
}

TEST(Measure, LeavesOutWhatIsNotWantedAndLetsOthersSample) {
    Point point;
    Verification before;
    before.steps.resize(1);
    before.steps[0].op = "known";
    std::vector<double> samples;
    const auto order = parts(point, [&](PointOptions& options, PartContext& at) {
        at.verified = before;
        options.step_runs = options.output_repeats = 0;
        options.leave_out_experiments();
        at.sample = [&](Forward& forward) { samples = forward.chunk(); };
    });
    EXPECT_THAT(order, ElementsAre("weights", "prepare", "kernels", "counters"));
    EXPECT_EQ(point.verification.steps.at(0).op, "known");
    EXPECT_EQ(samples.size(), 1u);
    EXPECT_FALSE(point.end_to_end);
    EXPECT_THAT(point.marginal, IsEmpty());
}

/// The last bits of one gradient are others in every run, as a race in a backward kernel would leave them.
TEST(Measure, AGradientThatIsAnotherInEachRunIsFound) {
    const Model model = with_backward(make_gpt2(small_config(), 2, 33, AttentionKind::fused));
    const auto bytes_of = [&](TensorId id) { return static_cast<std::size_t>(model.tensors[id].elements()) * 4; };
    const auto is_longest = [&](std::size_t bytes) {
        return std::ranges::all_of(model.gradients, [&](const auto& pair) { return bytes_of(pair.second) <= bytes; });
    };
    for (const bool planted : {false, true}) {
        OtherDevice device;
        unsigned char runs = 0;
        if (planted)
            device.after_download = [&](void* to, std::size_t bytes) {
                if (is_longest(bytes)) *static_cast<unsigned char*>(to) = runs++;
            };
        Point point;
        const auto silent = testing::Matcher<std::vector<std::string>>(IsEmpty());
        const auto warns = testing::Matcher<std::vector<std::string>>(
            ElementsAre(HasSubstr(".grad differ between runs of the same input")));
        parts(
            point,
            [](PointOptions& options, PartContext& at) {
                at.verified.emplace();
                options.step_runs = 0;
                options.leave_out_experiments();
            },
            cpu_profiler(), small_run({}), device, planted ? warns : silent, model);
        EXPECT_EQ(runs > 1, planted);
    }
}

/// A machine that draws little and runs slowly for its first 0.1 s, and throttles then.
class WarmingMachine final : public MachineState {
  public:
    MachineReading read() override {
        const double now_s = seconds();
        MachineReading reading;
        reading.sm_clock_mhz = Quantity::measured(cold() ? 800 : 1700);
        reading.power_w = Quantity::measured(cold() ? 100 : 650);
        reading.energy_j = Quantity::measured(cold() ? 100 * now_s : 10 + 700 * (now_s - 0.1));
        reading.throttle_mask = cold() ? 0x20 : 0;
        return reading;
    }
    std::uint64_t throttle_mask() override { return 0; }
    std::string throttle_unavailable() const override { return {}; }
    std::chrono::milliseconds period() const override { return std::chrono::milliseconds(2); }

  private:
    using Clock = std::chrono::steady_clock;
    double seconds() {
        if (!first_) first_ = Clock::now();
        return std::chrono::duration<double>(Clock::now() - *first_).count();
    }
    bool cold() { return seconds() < 0.1; }
    std::optional<Clock::time_point> first_;
};

TEST(Measure, ConditionsAreThoseOfTheSamplesAndNotOfTheWarmUp) {
    WarmingMachine machine;
    OtherProfiler profiler;
    profiler.state = &machine;
    RunOptions longer = small_run({});
    longer.sampler.warm_up_s = 0.15;
    longer.sampler.min_time_s = longer.sampler.time_budget_s = 0.2;
    longer.sampler.min_samples = 40;
    Point point;
    parts(
        point,
        [](PointOptions& options, PartContext&) {
            options.step_runs = options.output_repeats = 0;
            options.leave_out_experiments();
        },
        profiler, longer);
    const Conditions& conditions = point.conditions;
    EXPECT_EQ(conditions.sm_clock_mhz.value, 1700);
    EXPECT_THAT(conditions.throttle_reasons, IsEmpty());
    for (const ConditionReading& reading : conditions.readings) EXPECT_EQ(reading.power_w, 650) << reading.at_s;
    EXPECT_NEAR(conditions.power_w.value.value(), 700, 35) << "the counter's";
    EXPECT_NEAR(conditions.energy_j.value.value(), 700 * conditions.readings.back().at_s, 20);
    EXPECT_LT(conditions.readings.back().at_s, 1) << "since the first sample began";
    ASSERT_FALSE(conditions.blocks.empty());
    for (const ConditionBlock& block : conditions.blocks) EXPECT_EQ(block.sm_clock_mhz.value_or(1700), 1700);
    EXPECT_LE(conditions.blocks.back().until_s, conditions.readings.back().at_s);
    const double forward_s = point.end_to_end->latency.summary_ms.median * 1e-3;
    EXPECT_DOUBLE_EQ(point.end_to_end->energy_per_sequence_j->value.value(), *conditions.power_w.value * forward_s / 2);
    EXPECT_DOUBLE_EQ(point.end_to_end->energy_per_token_j->value.value(),
                     *conditions.power_w.value * forward_s / (2 * 33));
}

/// A host on which this process's thread waits for a CPU for a share of all time.
class BusyHost final : public MachineState {
  public:
    explicit BusyHost(double share) : share_(share) {}
    MachineReading read() override { return {}; }
    std::uint64_t throttle_mask() override { return 0; }
    std::string throttle_unavailable() const override { return "nothing looks"; }
    std::optional<CpuCounts> cpu_counts() override {
        CpuCounts counts;
        counts.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        counts.threads[1] = {counts.at_s, share_ * counts.at_s, 0};
        return counts;
    }

  private:
    double share_;
};

TEST(Measure, AProcessThatLacksItsCpusIsWarnedOfForItsSamplesAndItsSteps) {
    for (const double share : {0.01, 0.4}) {
        BusyHost host(share);
        OtherProfiler profiler;
        profiler.state = &host;
        const testing::Matcher<std::vector<std::string>> silent = IsEmpty();
        const testing::Matcher<std::vector<std::string>> warns =
            testing::ElementsAre(HasSubstr("lacked its CPUs for 40 % of the time while samples were taken"),
                                 HasSubstr("lacked its CPUs for 40 % of the time while its steps were timed"));
        Point point;
        parts(
            point,
            [](PointOptions& options, PartContext&) {
                options.output_repeats = 0;
                options.leave_out_experiments();
            },
            profiler, small_run({}), cpu(), share > 0.1 ? warns : silent);
        EXPECT_NEAR(point.conditions.cpu_share->waited_share.value.value(), share, 1e-6);
        EXPECT_EQ(starved(point.conditions), share > 0.1);
        EXPECT_EQ(point.conditions.cpu_share->starved_samples, 0) << "there were no others";
        EXPECT_EQ(point.conditions.throttle_unavailable, "nothing looks");
        for (const StepResult& step : point.steps) EXPECT_TRUE(step.time_us);
    }
}

TEST(Measurements, HaveANameAndAPlaceEach) {
    EndToEnd result;
    std::set<std::string_view> names;
    std::set<const Timing*> places;
    for (const MeasurementRow& row : measurement_rows()) {
        EXPECT_EQ(&row_of(row.kind), &row);
        names.insert(row.name);
        places.insert(&row.timing(result));
    }
    EXPECT_EQ(names.size(), measurement_rows().size());
    EXPECT_EQ(places.size() + 1, measurement_rows().size()) << "graph and forward are both the headline";
    EXPECT_EQ(&row_of(MeasurementKind::graph).timing(result), &result.latency);
    EXPECT_EQ(&row_of(MeasurementKind::enqueue).timing(result), &*result.enqueue);
}

TEST(RequireCounted, FailsOnlyForCountersAskedForByName) {
    std::vector<Point> points(2);
    points[0].status = PointStatus::done;
    points[1].status = PointStatus::skipped;
    points[1].counters.unavailable = "skipped anyway";
    const CounterRequest by_default, by_name{{"full"}, {}, true};
    EXPECT_NO_THROW(require_counted(points, by_name));
    points[0].counters.unavailable = "no permission (ERR_NVGPUCTRPERM)";
    EXPECT_NO_THROW(require_counted(points, by_default));
    try {
        require_counted(points, by_name);
        FAIL() << "accepted";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no permission (ERR_NVGPUCTRPERM)"));
    }
}

}  // namespace
}  // namespace kbench
