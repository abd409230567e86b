// kbench profile: which files are one run, labels of an earlier run as a schedule, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profile/schedule.h"
#include "tests/analysis/example_scopes.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class ProfileCommand : public Program {
  protected:
    std::string path(const std::string& name) const { return (directory_ / name).string(); }
};

TEST_F(ProfileCommand, ARunIsAFileOrTheFilesOfItsRanks) {
    directory_.write("one/prof.json", profile_text());
    for (const int rank : {0, 1, 10})
        directory_.write(fmt::format("many/prof.{}.json", rank), profile_text(rank, 1.1, 0.5));
    directory_.write("many/prof.x.json", "not of a rank");
    const Outcome text = kbench("profile report " + path("one"));
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("An iteration takes 10.00 ms"));
    EXPECT_EQ(kbench("profile report " + path("one/prof.json")).out, text.out);
    const auto json =
        nlohmann::json::parse(kbench("profile report --format json " + path("one") + " " + path("many")).out);
    EXPECT_EQ(json.at("runs").at(1).at("gpus"), 3);
    EXPECT_EQ(json.at("runs").at(1).at("scopes").back().at("rank"), 10) << "in the order of numbers";
    const std::string page = path("scaling.html");
    EXPECT_EQ(kbench("profile report --format html --out " + page + " " + path("one") + " " + path("many")).exit_code,
              0);
    EXPECT_THAT(read_text(page), HasSubstr("<html"));
    EXPECT_THAT(kbench("profile report --format markdown " + path("one")).out, HasSubstr("| scope |"));
    expect_refusal("profile report --format html --out " + page + " " + path("one"), "is there already");
    directory_.write("many/prof.json", profile_text());
    expect_refusal("profile report " + path("many"), "holds prof.json and prof.0.json, which are of two runs");
    expect_refusal("profile report " + path("none"), "none");
    std::filesystem::create_directory(path("empty"));
    expect_refusal("profile report " + path("empty"), "holds neither prof.json nor prof.RANK.json");
    expect_refusal("profile report " + directory_.write("x/prof.json", "{}").string(),
                   "format: expected kbench.scopes/1");
}

TEST_F(ProfileCommand, LabelsOfAnEarlierRunBecomeASchedule) {
    const std::string file = directory_.write("prof.json", profile_text()).string();
    const Outcome made = kbench("profile schedule --from " + file + " --repeat 7 --out " + path("prof.schedule"));
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(
        read_text(path("prof.schedule")),
        HasSubstr("repeat 7\nthen go on\nscope copy\nscope forward\nscope attention\nscope layer\nscope update\n"));
    const Outcome checked = kbench("profile schedule --check " + path("prof.schedule"));
    EXPECT_EQ(checked.out, read_text(path("prof.schedule")));
    expect_refusal("profile schedule --out " + path("prof.schedule"), "is there already");
    directory_.write("wrong", "scope *\nrepeat often\n");
    expect_refusal("profile schedule --check " + path("wrong"), "wrong:2: repeat 'often' must be a whole number");
}

TEST_F(ProfileCommand, WhatToDoIsNamed) {
    expect_refusal("profile", "name what to do: schedule or report");
    expect_refusal("profile repot", "did you mean report?");
    EXPECT_THAT(kbench("help profile").out, HasSubstr("schedule, report"));
    EXPECT_THAT(kbench("profile schedule --help").out, HasSubstr("--iterations"));
    EXPECT_THAT(kbench("profile report --help").out, HasSubstr("RUN"));
}

}  // namespace
}  // namespace kbench
