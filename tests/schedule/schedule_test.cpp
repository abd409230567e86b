// prof.schedule: what is read from it, what is refused and where, and which labels a glob names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kbench/error.h"
#include "profile/schedule.h"

namespace kbench::embedded {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view text) {
    try {
        parse_schedule(text, "prof.schedule");
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n"))) << "one line";
        return error.what();
    }
    return "nothing was refused";
}

TEST(Schedule, OneLineTakesAllScopes) {
    const Schedule schedule = parse_schedule("scope *", "prof.schedule");
    EXPECT_EQ(schedule.first, 10);
    EXPECT_EQ(schedule.end, std::nullopt);
    EXPECT_EQ(schedule.repeat, 50);
    EXPECT_FALSE(schedule.stops);
    EXPECT_EQ(schedule.output, "");
    EXPECT_EQ(schedule.row("anything"), 0u);
}

TEST(Schedule, EveryLineIsRead) {
    const Schedule schedule = parse_schedule(
        "# which parts of a step are slow\r\n\n  iterations 100:200  \nthen stop\noutput my profile\nrepeat 7\n"
        "scope layer * forward start 120\nscope\tloss\nscope # 1",
        "prof.schedule");
    EXPECT_EQ(schedule.first, 100);
    EXPECT_EQ(schedule.end, 200);
    EXPECT_EQ(schedule.repeat, 7);
    EXPECT_TRUE(schedule.stops);
    EXPECT_EQ(schedule.output, "my profile");
    ASSERT_EQ(schedule.scopes.size(), 3u);
    EXPECT_EQ(schedule.scopes[0].glob, "layer * forward");
    EXPECT_EQ(schedule.scopes[0].start, 120);
    EXPECT_EQ(schedule.row("layer 12 forward"), 0u);
    EXPECT_EQ(schedule.row("loss"), 1u);
    EXPECT_EQ(schedule.row("# 1"), 2u);
    EXPECT_EQ(schedule.row("layer 12 backward"), std::nullopt);
}

TEST(Schedule, WhatIsWrongIsSaidWithItsLine) {
    EXPECT_THAT(refusal("scope *\nscopes a"), StartsWith("prof.schedule:2: 'scopes' is unknown; a line begins with"));
    EXPECT_THAT(refusal("\niterations 10"), HasSubstr("prof.schedule:2: iterations '10' must be A:B"));
    for (const char* wrong : {"a:9", "5:b", "-1:9", "1:9999999999999999999", "1:2:3", ":", "", "1.5:9"})
        EXPECT_THAT(refusal(std::string("iterations ") + wrong), HasSubstr("must be A:B")) << wrong;
    EXPECT_THAT(refusal("iterations 10:11"), HasSubstr("must be at least two"));
    EXPECT_THAT(refusal("iterations 10:5"), HasSubstr("must be at least two"));
    EXPECT_THAT(refusal("then go"), HasSubstr("'then' is 'go'; it must be stop or go on"));
    EXPECT_THAT(refusal("repeat 0"), HasSubstr("must be a whole number from 1 to 1000000"));
    EXPECT_THAT(refusal("repeat many"), HasSubstr("must be a whole number"));
    EXPECT_THAT(refusal("output"), HasSubstr("must name a folder"));
    EXPECT_THAT(refusal("scope"), HasSubstr("must name a label"));
    EXPECT_THAT(refusal("scope a start soon"), HasSubstr("start 'soon' must be the number of an iteration"));
    EXPECT_THAT(refusal("scope a\x01"), HasSubstr("has a control character"));
    EXPECT_THAT(refusal("repeat 1\nrepeat 2\nscope *"), EndsWith(":2: a second line 'repeat'"));
    EXPECT_THAT(refusal("repeat 5\n"), HasSubstr("names no scope; the line 'scope *' takes all"));
    EXPECT_THAT(refusal(std::string(longest_schedule + 1, '#')), HasSubstr("larger than"));
    std::string many;
    for (int i = 0; i < 10'001; ++i) many += "scope a\n";
    EXPECT_THAT(refusal(many), HasSubstr(":10001: more than 10000 scopes"));
}

TEST(Schedule, WhatIsWrittenIsReadAgain) {
    Schedule schedule;
    EXPECT_THAT(schedule_text(schedule), HasSubstr("iterations 10:\n"));
    schedule.first = 3;
    schedule.end = 77;
    schedule.repeat = 5;
    schedule.stops = true;
    schedule.output = "out folder";
    schedule.scopes = {{"a*", 0}, {glob_of("b start 4"), 12}};
    const std::string text = schedule_text(schedule);
    const Schedule read = parse_schedule(text, "again");
    EXPECT_EQ(schedule_text(read), text);
    EXPECT_EQ(read.end, 77);
    EXPECT_TRUE(read.stops);
    EXPECT_EQ(read.row("b start 4"), 1u);
    EXPECT_EQ(read.scopes[1].start, 12);
}

TEST(Schedule, AFolderThatALineDoesNotKeepIsRefused) {
    Schedule schedule;
    set_output(schedule, "my profile", "--folder");
    EXPECT_EQ(parse_schedule(schedule_text(schedule) + "scope *", "again").output, "my profile");
    for (const char* wrong : {"", " a", "a ", "a\nb", "a\x1b"})
        EXPECT_THROW(set_output(schedule, wrong, "--folder"), UsageError) << wrong;
}

TEST(Schedule, GlobsNameLabels) {
    for (const auto& [glob, label] : std::vector<std::pair<std::string, std::string>>{{"*", ""},
                                                                                      {"*", "all"},
                                                                                      {"a*c", "abc"},
                                                                                      {"a*c", "ac"},
                                                                                      {"a*b*c", "axbxbc"},
                                                                                      {"?b", "ab"},
                                                                                      {"layer.*.mlp", "layer.0.mlp"},
                                                                                      {"**", "x"},
                                                                                      {"a\\*", "a*"},
                                                                                      {"a\\\\", "a\\"},
                                                                                      {"*a", "aaa"},
                                                                                      {"", ""}})
        EXPECT_TRUE(matches(glob, label)) << glob << " " << label;
    for (const auto& [glob, label] : std::vector<std::pair<std::string, std::string>>{
             {"", "a"}, {"a", "ab"}, {"a*c", "acb"}, {"?", ""}, {"?", "ab"}, {"a\\*", "ab"}, {"*.mlp", "layer.mlp.0"}})
        EXPECT_FALSE(matches(glob, label)) << glob << " " << label;
    // Each * would try every place of those before it, if it were done by recursion.
    EXPECT_FALSE(matches(std::string(2000, '*') + "b", std::string(20'000, 'a')));
}

TEST(Schedule, ALabelHasAGlobOfItsOwn) {
    for (const std::string label : {"loss", "a*b?c\\d", "wait start 7", "a start b start 5", " led ", "tab\tand\nline",
                                    "a start ", "start 5", "größe"}) {
        const Schedule read = parse_schedule("scope " + glob_of(label), "prof.schedule");
        EXPECT_EQ(read.scopes.front().start, 0) << label;
        EXPECT_EQ(read.row(label), 0u) << label;
        EXPECT_EQ(read.row(label + "x"), std::nullopt) << label;
    }
    EXPECT_FALSE(matches(glob_of("a*"), "ab"));
}

}  // namespace
}  // namespace kbench::embedded
