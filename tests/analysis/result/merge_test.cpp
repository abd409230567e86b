// Joining results: what is kept, and what keeps them apart.
#include "analysis/result/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kbench/error.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// A result of the example's first point, changed.
ResultFile file(const std::string& path, const std::function<void(Result&)>& change = {}) {
    ResultFile file{path, example::short_result()};
    file.result.points.resize(1);
    file.result.options = {{"model", "gpt2-large"}, {"seed", "1"}};
    if (change) change(file.result);
    return file;
}

std::string refusal(const std::function<void(Result&)>& change) {
    try {
        merge_results({file("a.json"), file("b.json", change)});
    } catch (const UsageError& error) {
        return error.what();
    }
    return "joined";
}

TEST(Merge, PointsStandByRepeatLengthBatchAndPrecision) {
    const auto point = [](int repeat, std::int64_t seq, std::int64_t batch, Precision precision) {
        return [=](Result& result) {
            Point& p = result.points[0];
            p.set("repeat", repeat);
            p.set("seq", seq);
            p.set("batch", batch);
            p.set("precision", precision);
        };
    };
    const Result all =
        merge_results({file("a", point(2, 8, 1, Precision::fp16)), file("b", point(1, 16, 1, Precision::fp32)),
                       file("c", point(1, 8, 2, Precision::fp16)), file("d", point(1, 8, 1, Precision::fp32)),
                       file("e", point(1, 8, 1, Precision::fp16))});
    std::vector<std::string> order;
    for (const Point& p : all.points)
        order.push_back(fmt::format("{} {} {} {}", *p.axes.count("repeat"), *p.seq(), p.batch(), name(p.precision())));
    EXPECT_THAT(order, ElementsAre("1 8 1 fp16", "1 8 1 fp32", "1 8 2 fp16", "1 16 1 fp32", "2 8 1 fp16"));
}

TEST(Merge, KeepsAllThatWasMeasuredAndEachWarningOnce) {
    const Result all = merge_results({file("a.json",
                                           [](Result& r) {
                                               r.warnings = {"one", "two"};
                                           }),
                                      file("b.json", [](Result& r) {
                                          r.points[0].set("batch", 7);
                                          r.warnings = {"two", "three"};
                                          r.environment.started_at = "2020-01-01T00:00:00Z";
                                          r.ceilings.ceilings = {{"dram_copy", Quantity::measured(4000), 1, 2, 3, {}}};
                                      })});
    EXPECT_THAT(all.points, SizeIs(2));
    EXPECT_THAT(all.warnings, ElementsAre("one", "two", "three"));
    EXPECT_EQ(all.environment.started_at, "2020-01-01T00:00:00Z");
    EXPECT_EQ(all.options.at("seed"), "1");
    EXPECT_THAT(all.ceilings.ceilings, SizeIs(1)) << "the first that has any";
}

TEST(Merge, TheSamePointTwiceIsOneWhereItsDataAreTheSame) {
    EXPECT_THAT(merge_results({file("a.json"), file("b.json")}).points, SizeIs(1));
    EXPECT_THAT(refusal([](Result& r) { r.points[0].end_to_end->latency.samples_ms[0] += 1e-9; }),
                testing::AllOf(HasSubstr("gpt2-large, batch 1, seq 1024, fp16, cuda has other data in b.json"),
                               HasSubstr("than in a.json")));
    EXPECT_THAT(
        merge_results({file("a.json"), file("b.json", [](Result& r) { r.points[0].batch_is_max = true; })}).points,
        SizeIs(2))
        << "batch max that is 1 is another point than batch 1";
}

TEST(Merge, NamesTheFirstDifference) {
    EXPECT_THAT(refusal([](Result& r) { r.options["seed"] = "2"; }),
                HasSubstr("option seed is 1 in a.json and 2 in b.json"));
    EXPECT_THAT(refusal([](Result& r) { r.options["model"] = "gpt2"; }), HasSubstr("option model is gpt2-large in"));
    EXPECT_THAT(refusal([](Result& r) { r.options["new"] = "x"; }), HasSubstr("option new is not there in a.json"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.host.cpu_quota = 0.5; }),
                HasSubstr("quota of CPU time is not there in a.json and 0.5 CPUs in b.json"));
    EXPECT_THAT(refusal([](Result& r) { r.options.clear(); }), HasSubstr("b.json records no options"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.git_revision = "1234567"; }),
                HasSubstr("revision is 3f2c1ab in a.json and 1234567 in b.json"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.gpu->name = "A100"; }),
                HasSubstr("GPU is NVIDIA H200 in a.json and A100 in b.json"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.gpu.reset(); }), HasSubstr("and not there in b.json"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.host.cpu = "EPYC"; }), HasSubstr("CPU is INTEL"));
    EXPECT_THAT(refusal([](Result& r) { r.environment.libraries["cublaslt"] = "13.2"; }),
                HasSubstr("library cublaslt is 13.1.0 in a.json and 13.2 in b.json"));
}

TEST(Merge, CardsOfAKindAreJoinedButAreNotTheSameCard) {
    const ResultFile a = file("a.json"), b = file("b.json", [](Result&r) { r.environment.gpu->uuid = "GPU-2"; });
    EXPECT_EQ(difference(a.result, b.result, SameDevice::kind, "a", "b"), "");
    EXPECT_THAT(difference(a.result, b.result, SameDevice::card, "a", "b"), HasSubstr("GPU's UUID is GPU-00000000"));
}

TEST(Merge, NothingIsNoResult) {
    EXPECT_THAT([] { merge_results({}); }, testing::ThrowsMessage<UsageError>(HasSubstr("no results to join")));
}

}  // namespace
}  // namespace kbench
