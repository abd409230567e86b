// The number that a regular expression finds in what a program printed.
#include "bench/command/repeated/printed_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/command/repeated/output_lines.h"
#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class PrintedMetricTest : public testing::Test {
  protected:
    PrintedMetric::Found found(const std::string& pattern, const std::string& printed) {
        return PrintedMetric(pattern).last_in(directory_.write("printed", printed));
    }

    TemporaryDirectory directory_;
};

TEST_F(PrintedMetricTest, IsTheLastOneOfAllLines) {
    EXPECT_EQ(found("step: ([0-9.]+) ms", "step: 3.5 ms\nstep: 3.25 ms, step: 3.125 ms\nmean: 9 ms\n").value, 3.125);
    EXPECT_EQ(found("time=([^ ]+)", "time=1e-3").value, 1e-3) << "a last line without an end";
    EXPECT_EQ(found("^([0-9]+)%", "10%\r20%\r30%").value, 30) << "a bar that rewrites its line";
    EXPECT_EQ(found("(?:tokens|samples)/s: ([0-9.]+)", "samples/s: 12").value, 12);
}

TEST_F(PrintedMetricTest, CountsItsDigits) {
    struct Known {
        const char* text;
        int decimals, significant;
    };
    for (const auto& [text, decimals, significant] : {Known{"3.50", 2, 3},
                                                      {"350", 0, 3},
                                                      {"3.5e2", -1, 2},
                                                      {"35e-3", 3, 2},
                                                      {"3.", 0, 1},
                                                      {"1.2e+03", -2, 2},
                                                      {"1.5E+3", -2, 2},
                                                      {"0.0050", 4, 2}}) {
        const Digits digits = found("x=(.*)", std::string("x=") + text).digits;
        EXPECT_EQ(digits.decimals, decimals) << text;
        EXPECT_EQ(digits.significant, significant) << text;
    }
}

TEST_F(PrintedMetricTest, SaysWhatItFoundInstead) {
    EXPECT_EQ(found("x: ([0-9]+)", "y: 1\n").why_not, "nothing that --metric matches");
    EXPECT_EQ(found("x: ([0-9]+)", "").why_not, "nothing that --metric matches");
    EXPECT_THAT(found("x: (.*)", "x: 1,234\n").why_not,
                HasSubstr("'1,234' where --metric matches, which is no number"));
    for (const char* text : {"nan", "inf", "1 ms", ""})
        EXPECT_THAT(found("x: (.*)", std::string("x: ") + text + "\n").why_not, HasSubstr("no number")) << text;
    for (const char* text : {"0", "-2.5"})
        EXPECT_THAT(found("x: (.*)", std::string("x: ") + text + "\n").why_not, HasSubstr("needs numbers above 0"))
            << text;
    EXPECT_EQ(found("x: ([0-9]+)|done", "x: 7\ndone\n").value, 7) << "the other branch has no number";
    EXPECT_THAT(found("x: (.*)", "x: 1\nx: none\n").why_not, HasSubstr("'none'")) << "an earlier one is another";
}

TEST_F(PrintedMetricTest, TheLastLineOfAnOutputIsShort) {
    const auto last = [&](const std::string& text) { return last_output_line(directory_.write("log", text)); };
    EXPECT_EQ(last("one\ntwo\n\n"), "two");
    EXPECT_EQ(last("10%\r20%\rlost"), "lost");
    EXPECT_EQ(last(std::string(10000, 'a')).size(), 300u);
    EXPECT_EQ(last(""), "");
}

/// std::regex would end the stack: a line of a megabyte is passed over, and that is said.
TEST_F(PrintedMetricTest, LongLinesAreNotSearched) {
    const std::string before(longest_output_line - 4, 'a');
    EXPECT_EQ(found(".*x: ([0-9])", before + "x: 7\n").value, 7);
    EXPECT_THAT(found(".*x: ([0-9])", before + "xx: 7\n").why_not,
                HasSubstr("more than 4096 characters, of which there are 1"));
    EXPECT_EQ(found(".*x: ([0-9]+)", std::string(1 << 20, 'a') + "x: 7\nx: 8\n").value, 8);
}

TEST(PrintedMetricPattern, IsOneGroup) {
    const auto refusal = [](const char* pattern) { return refusal_of([&] { PrintedMetric{pattern}; }); };
    EXPECT_THAT(refusal("time: [0-9]+"), HasSubstr("must have one group, around the number"));
    EXPECT_THAT(refusal("(a|b): ([0-9]+)"), HasSubstr("must have one group"));
    EXPECT_THAT(refusal("time: ([0-9]+"), HasSubstr("must be wall or a regular expression"));
    EXPECT_THAT(refusal("([0-9]*)"), HasSubstr("matches where nothing stands"));
    EXPECT_EQ(refusal("time: ([0-9]+)"), "accepted");
}

}  // namespace
}  // namespace kbench
