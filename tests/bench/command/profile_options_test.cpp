// The command line of `kbench profile`, and its page in docs/.
#include "bench/command/profile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::string schedule_of(const std::vector<std::string>& arguments) {
    return embedded::schedule_text(parse_schedule_options(arguments).request.schedule);
}

TEST(ProfileOptions, AScheduleHasWhatTheOptionsSay) {
    EXPECT_EQ(schedule_of({}), "iterations 10:\nrepeat 50\nthen go on\nscope *\n");
    EXPECT_EQ(schedule_of({"--scopes", "forward*,a\\,b start 20", "--iterations", "5:50", "--repeat", "3", "--then",
                           "stop", "--folder", "out"}),
              "iterations 5:50\nrepeat 3\nthen stop\noutput out\nscope forward*\nscope a\\,b start 20\n");
}

TEST(ProfileOptions, WhatASchedulesLineRefusesAnOptionRefuses) {
    const auto refused = [](const std::vector<std::string>& arguments) {
        return refusal_of([&] { parse_schedule_options(arguments); });
    };
    EXPECT_THAT(refused({"--iterations", "5"}), HasSubstr("--iterations: iterations '5' must be A:B"));
    EXPECT_THAT(refused({"--repeat", "0"}), HasSubstr("--repeat: repeat '0' must be a whole number"));
    EXPECT_THAT(refused({"--scopes", "a,,b"}), HasSubstr("--scopes 'a,,b': 'scope' must name a label"));
    EXPECT_THAT(refused({"--then", "sleep"}), HasSubstr("--then"));
    EXPECT_THAT(refused({"--folder", "a\nb"}), HasSubstr("--folder"));
    EXPECT_THAT(refused({"--out", ""}), HasSubstr("--out '': name a file"));
    EXPECT_THAT(refused({"--from", "p.json", "--scopes", "a"}), HasSubstr("labels come from one of them"));
    EXPECT_THAT(refused({"--check", "prof.schedule", "--repeat", "5"}), HasSubstr("give no other option"));
}

TEST(ProfileOptions, AReportTakesRuns) {
    const ScopeReportRequest request =
        parse_scope_report({"one", "two", "--format", "json", "--out", "r.json"}).request;
    EXPECT_EQ(request.runs.size(), 2u);
    EXPECT_EQ(request.format, "json");
    EXPECT_EQ(request.out, "r.json");
    EXPECT_THAT(refusal_of([] { parse_scope_report({}); }), HasSubstr("no RUN"));
    EXPECT_THAT(refusal_of([] { parse_scope_report({"one", "--format", "csv"}); }), HasSubstr("--format"));
}

TEST(ProfileOptions, TheReferenceInDocsIsBothTables) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/profile.md");
    std::stringstream text;
    text << file.rdbuf();
    for (const std::string& table : {markdown_of(schedule_options()), markdown_of(scope_report_options())})
        EXPECT_THAT(text.str(), HasSubstr(table)) << "a table in docs/profile.md must be:\n" << table;
}

}  // namespace
}  // namespace kbench
