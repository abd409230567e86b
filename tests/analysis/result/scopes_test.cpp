// prof.json: what is read of it, what is refused and where, and labels added up over streams and GPUs.
#include "analysis/result/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"
#include "tests/analysis/example_scopes.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Scopes, AFileIsRead) {
    const ScopeProfile profile = parse_scope_profile(profile_text(3), "prof.3.json");
    EXPECT_EQ(profile.host, "node1");
    EXPECT_EQ(profile.rank, 3);
    EXPECT_THAT(profile.arguments, ElementsAre("build/training_loop", "--steps", "1000"));
    EXPECT_TRUE(profile.is_complete);
    ASSERT_EQ(profile.devices.size(), 1u);
    const ScopeDevice& device = profile.devices[0];
    EXPECT_EQ(device.name, "A GPU");
    EXPECT_EQ(device.iteration.ms, 10);
    EXPECT_EQ(device.iteration.n, 300);
    ASSERT_EQ(device.streams.size(), 2u);
    const ScopeStream& stream = device.streams[0];
    ASSERT_EQ(stream.scopes.size(), 4u);
    const MeasuredScope& attention = stream.scopes[1];
    EXPECT_EQ(attention.label, "attention");
    EXPECT_EQ(attention.start_index, 1);
    EXPECT_EQ(attention.end_index, 2);
    EXPECT_EQ(attention.time.ms, 1.25);
    EXPECT_EQ(attention.offset_ms, 0.75);
    EXPECT_EQ(stream.depth(attention), 1u);
    EXPECT_EQ(stream.depth(stream.scopes[0]), 0u);
    EXPECT_EQ(stream.title(attention), "attention");
    EXPECT_EQ(stream.title(stream.scopes[3]), "layer #2");
    EXPECT_TRUE(device.streams[1].scopes[1].in_graph);
}

TEST(Scopes, LabelsAreAddedUpWithoutThoseWithinOthers) {
    const std::vector<LabelTime> times = label_times(one_gpu());
    std::vector<std::string> labels;
    double sum = 0;
    for (const LabelTime& time : times) {
        labels.push_back(time.label);
        sum += time.average_ms;
        EXPECT_EQ(time.average_ms, time.maximum_ms) << time.label;
    }
    EXPECT_THAT(labels, ElementsAre("copy", "forward", "layer", "update"));
    EXPECT_DOUBLE_EQ(sum, 0.125 + 3 + 3.5 + 1);
    const std::vector<LabelTime> of_two = label_times(two_gpus());
    EXPECT_DOUBLE_EQ(of_two[1].average_ms, 3 * 1.15);
    EXPECT_DOUBLE_EQ(of_two[1].maximum_ms, 3 * 1.2);
    EXPECT_EQ(two_gpus().device_count(), 2u);
    EXPECT_EQ(two_gpus().host_count(), 2u);
    EXPECT_DOUBLE_EQ(*two_gpus().iteration().ms, 10.5 * 1.2) << "of the slowest";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, text.npos) << what;
    return at == text.npos ? text : text.replace(at, what.size(), with);
}

std::string refusal(const std::string& text) {
    try {
        parse_scope_profile(text, "prof.json");
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), StartsWith("prof.json: "));
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
        return error.what();
    }
    return "nothing was refused";
}

TEST(Scopes, WhatIsMalformedIsSaidWithItsPlace) {
    const std::string right = profile_text();
    EXPECT_THAT(refusal("[1]"), HasSubstr("expected an object, found an array"));
    struct Wrong {
        std::string what, with, said;
    };
    const std::string time = "\"avg_measured_time_ms\": 1.25";
    for (
        const Wrong& wrong : std::vector<Wrong>{
            {"}}}", "}", "not JSON"},
            {"scopes/1", "scopes/2", "format: expected kbench.scopes/1"},
            {R"("host_name": "node1",)", "", "host_name: expected a value"},
            {R"("rank": null)", R"("rank": -1)", "rank: expected an integer from 0"},
            {R"("complete": true)", R"("complete": 1)", "complete: expected true or false"},
            {R"("id": 0)", R"("id": 1)", "timeline.0: expected a device of 'devices'"},
            {R"("notes": []})", R"("notes": []}, {"id": 0})", "devices[1].name: expected a value"},
            {R"("notes": []})",
             R"("notes": []}, {"id": 0, "name": "", "avg_iter_time_ms": null, "iter_ci_low": null, "iter_ci_high": null, "iter_n": 0, "notes": []})",
             "devices[1].id: expected each device once, found 0"},
            {R"("label": "attention")", R"("label": 7)", "timeline.0.stream 0[1].label: expected a string"},
            {time, R"("avg_measured_time_ms": -1)", "avg_measured_time_ms: expected a number from 0"},
            {time, R"("avg_measured_time_ms": null)", "stream 0[1].n: expected 0 without a time, found 50"},
            {time, R"("avg_measured_time_ms": 5)", "ci_low: expected an interval around avg_measured_time_ms"},
            {time, R"("avg_measured_time_ms": 1e999)", "not JSON"},
            {R"("ci_low": 1.2375)", R"("ci_low": null)", "[1].ci_low: expected an interval around"},
            {R"("stream 1": [)", R"("stream 1": 5, "x": [)", "timeline.0.stream 1: expected an array"}})
        EXPECT_THAT(refusal(replaced(right, wrong.what, wrong.with)), HasSubstr(wrong.said)) << wrong.with;
}

TEST(Scopes, WhatALaterVersionAddsIsIgnored) {
    std::string text = profile_text();
    text.replace(1, 0, "\"new\": [1, 2], ");
    EXPECT_EQ(parse_scope_profile(text, "prof.json").host, "node1");
}

TEST(Scopes, AScopeWithoutSamplesHasNoTime) {
    const std::string text =
        replaced(profile_text(), R"("avg_measured_time_ms": 1.25, "ci_low": 1.2375, "ci_high": 1.2625, "n": 50)",
                 R"("avg_measured_time_ms": null, "ci_low": null, "ci_high": null, "n": 0)");
    const ScopeProfile profile = parse_scope_profile(text, "prof.json");
    EXPECT_EQ(profile.devices[0].streams[0].scopes[1].time.ms, std::nullopt);
}

}  // namespace
}  // namespace kbench
