// Progress: a line on a terminal, lines in a log, nothing where it is not wanted.
#include "bench/measure/point/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "bench/command/options.h"

namespace kbench {
namespace {

/// What a line of progress leaves on a terminal.
std::string on_a_terminal(bool quiet) {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
    dup2(end, STDERR_FILENO);
    Progress(quiet).show("point 1 of 2");
    dup2(before, STDERR_FILENO);
    char text[256] = {};
    pollfd waiting{terminal, POLLIN, 0};
    const ssize_t count = poll(&waiting, 1, 100) > 0 ? read(terminal, text, sizeof text) : 0;
    for (const int file : {terminal, end, before}) close(file);
    return {text, static_cast<std::size_t>(count)};
}

TEST(Progress, IsShownOnATerminalUnlessQuietIsAskedFor) {
    EXPECT_THAT(on_a_terminal(false), testing::HasSubstr("point 1 of 2"));
    EXPECT_EQ(on_a_terminal(true), "");
    EXPECT_TRUE(parse_run({"--model", "gpt2", "-q"}).request.quiet);
    EXPECT_FALSE(parse_run({"--model", "gpt2"}).request.quiet);
}

/// What a log gets while `work` runs.
std::string in_a_log(bool quiet, const std::function<void(Progress&)>& work) {
    testing::internal::CaptureStderr();
    {
        Progress progress(quiet, std::chrono::milliseconds(20));
        work(progress);
    }
    return testing::internal::GetCapturedStderr();
}

void wait_for_a_line() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

TEST(Progress, InALogIsALineEverySoOften) {
    const auto two_parts = [](Progress& progress) {
        progress.show("[1/2] verify");
        wait_for_a_line();
        progress.show("[1/2] measure");
        wait_for_a_line();
    };
    const std::string text = in_a_log(false, two_parts);
    EXPECT_THAT(text, testing::HasSubstr("[1/2] verify, 0 s so far\n"));
    EXPECT_THAT(text, testing::HasSubstr("[1/2] measure, 0 s so far\n"));
    EXPECT_EQ(in_a_log(true, two_parts), "");
}

TEST(Progress, InALogSaysNothingOfWhatIsShortOrOver) {
    testing::internal::CaptureStderr();
    {
        Progress progress;
        progress.show("ten seconds are not over");
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(in_a_log(false,
                       [](Progress& progress) {
                           progress.show("over");
                           progress.clear();
                           wait_for_a_line();
                       }),
              "");
}

}  // namespace
}  // namespace kbench
