// Writes to standard output and standard error, and remembers the first write that failed.
#include "bench/device/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace kbench {
namespace {

/// errno of the first write that failed; 0: none did.
int failed_with = 0;

void remember_failure() {
    if (failed_with == 0) failed_with = errno != 0 ? errno : EIO;
}

}  // namespace

void open_standard_streams() {
    std::signal(SIGPIPE, SIG_IGN);
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
        if (fcntl(descriptor, F_GETFD) != -1) continue;
        // Lower numbers are taken by now, so that this is the one; who writes to the first two fails.
        const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
        if (opened > descriptor) close(opened);
    }
}

void put_text(std::string_view text) {
    errno = 0;
    // At once: others follow it line by line.
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) remember_failure();
}

void say_text(std::string_view text) {
    static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
    static_cast<void>(std::fflush(stderr));
}

std::string without_controls(std::string text) {
    const auto is_control = [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || static_cast<unsigned char>(c) == 0x7f;
    };
    std::ranges::replace_if(text, is_control, ' ');
    return text;
}

std::string output_failure() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) remember_failure();
    return failed_with == 0 ? "" : std::strerror(failed_with);
}

}  // namespace kbench
