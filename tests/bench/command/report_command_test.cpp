// kbench report: its options, what it writes where, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report/render/render.h"
#include "bench/command/command.h"
#include "bench/command/report_options.h"
#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return (std::stringstream() << file.rdbuf()).str();
}

const std::filesystem::path source = KBENCH_SOURCE_DIR;

class ReportCommand : public testing::Test {
  protected:
    static void report(const std::vector<std::string>& arguments) { EXPECT_EQ(report_command(arguments, ""), 0); }
    std::string refusal(const std::string& text) {
        const std::string file = directory_.write("refused/result.json", text).string();
        const std::string said = refusal_of([&] { report_command({file}, ""); });
        EXPECT_FALSE(std::filesystem::exists(directory_ / "refused/report.html"));
        EXPECT_THAT(said, HasSubstr("result.json")) << "says where";
        return said;
    }
    const std::string example_ = content(source / "tests/analysis/golden/result.json");
    TemporaryDirectory directory_;
};

TEST_F(ReportCommand, WritesIntoARunsOwnFolderAndLeavesTheResultAlone) {
    const std::filesystem::path result = directory_.write("run/result.json", example_);
    directory_.write("run/.kbench.lock", "");
    report({(directory_ / "run").string()});
    EXPECT_THAT(content(directory_ / "run/report.html").substr(0, 40), StartsWith("<!doctype html>"));
    EXPECT_EQ(content(result), example_);
}

TEST_F(ReportCommand, WritesIntoADirectoryThatItMakes) {
    const std::filesystem::path result = directory_.write("run/result.json", example_);
    report({result.string(), "--out", (directory_ / "a/b").string(), "--format", "html"});
    EXPECT_TRUE(std::filesystem::exists(directory_ / "a/b/report.html"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "a/b/result.json"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run/report.html"));
}

TEST_F(ReportCommand, TextGoesToStandardOutputAlone) {
    const std::filesystem::path result = directory_.write("run/result.json", example_);
    testing::internal::CaptureStdout();
    report({result.string(), "--format", "text"});
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("sequences/s"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run/report.html"));
}

TEST_F(ReportCommand, WhatIfIsToldInEachFormatThatItOffers) {
    const std::string result = directory_.write("run/result.json", example_).string();
    for (const auto& [format, start] :
         {std::pair{"text", "What if: "}, {"md", "# What if"}, {"html", "<!doctype"}, {"json", "[\n"}}) {
        testing::internal::CaptureStdout();
        report({result, "--what-if", "a100-sxm4-80gb", "--format", format});
        EXPECT_THAT(testing::internal::GetCapturedStdout(), StartsWith(start)) << format;
    }
}

TEST_F(ReportCommand, RefusesWhatIsNoResultInOneLine) {
    EXPECT_NE(refusal(""), "accepted");
    for (const double share : {0.1, 0.5, 0.99})
        EXPECT_NE(refusal(example_.substr(0, static_cast<std::size_t>(share * static_cast<double>(example_.size())))),
                  "accepted");
    EXPECT_NE(refusal("{\"traceEvents\": []}"), "accepted");
    EXPECT_NE(refusal("PK\x03\x04 a zip file"), "accepted");
    EXPECT_NE(refusal(std::string(1'000'000, '[')), "accepted");
    std::string newer = example_;
    newer.replace(newer.find("kbench.result/6"), 15, "kbench.result/9");
    EXPECT_THAT(refusal(newer), HasSubstr("kbench.result/9"));
    std::string wrong = example_;
    wrong.replace(wrong.find("\"points\": ["), 11, "\"points\": [7,");
    EXPECT_NE(refusal(wrong), "accepted");
}

TEST_F(ReportCommand, DrawsResultsOfOlderSchemas) {
    report({(source / "results/h200-2026-11-21/fp16").string(), "--out", directory_.write("old/x", "").parent_path()});
    EXPECT_THAT(page_document(content(directory_ / "old/report.html")).dump(), HasSubstr("h.35.mlp.c_fc"));
}

TEST_F(ReportCommand, RefusesWhatItCannotDo) {
    const auto refused = [](const std::vector<std::string>& arguments) {
        return refusal_of([&] { report_command(arguments, ""); });
    };
    EXPECT_THAT(refused({}), HasSubstr("no RESULT"));
    EXPECT_THAT(refused({"a.json", "b.json"}), HasSubstr("'b.json'"));
    EXPECT_THAT(refused({(directory_ / "nothing").string()}), HasSubstr("cannot be read"));
    EXPECT_THAT(refused({"a.json", "--format", "pdf"}), HasSubstr("html"));
    EXPECT_THAT(refused({"a.json", "--format", "json"}), HasSubstr("of --what-if alone"));
    const std::string result = directory_.write("run/result.json", example_).string();
    EXPECT_THAT(refused({result, "--out", result}), HasSubstr("--out"));
    EXPECT_THAT(refused({result, "--what-if", "a100-sxm4-80gb", "--out", (directory_ / "out").string()}),
                HasSubstr("--what-if writes to stdout and no file"));
    EXPECT_THAT(refused({result, "--what-if", "a100-sxm4-80gb", "--format", "trace"}), HasSubstr("--format trace"));
    EXPECT_THAT(refused({result, "--verbose"}), HasSubstr("--verbose: goes with --format text alone"));
    EXPECT_THAT(refused({result, "--verbose", "--format", "html"}), HasSubstr("--verbose: goes with --format text"));
}

TEST(ReportOptions, TheReferenceInDocsIsTheTable) {
    const std::string table = markdown_of(report_options());
    EXPECT_THAT(content(source / "docs/report.md"), HasSubstr(table)) << "the table in docs/report.md must be:\n"
                                                                      << table;
}

}  // namespace
}  // namespace kbench
