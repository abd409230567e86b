// The line of progress: on a terminal, unless it is not wanted.
#include "bench/measure/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

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

}  // namespace
}  // namespace kbench
