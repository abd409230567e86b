// See read_file.h.
#include "bench/plan/data/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/plan/data/descriptor.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// No file of text or tokens is larger; a device may give bytes for ever.
constexpr std::size_t most_bytes = std::size_t{1} << 32;

}  // namespace

std::string read_whole_file(const std::filesystem::path& path) {
    const auto fail = [&](const std::string& why) -> void {
        throw UsageError(fmt::format("{}: cannot be read: {}", path.string(), why));
    };
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) fail(std::strerror(errno));
    if (S_ISDIR(status.st_mode)) fail("it is a directory");
    std::string text;
    // One byte more than it says: a file that ends there has ended. Of a pipe nobody knows.
    const std::size_t chunk = std::clamp<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096, 1 << 20);
    for (;;) {
        const std::size_t before = text.size();
        text.resize(before + chunk);
        const ssize_t got = read(file.get(), text.data() + before, chunk);
        text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
        if (got == 0) return text;
        if (got < 0 && errno != EINTR) fail(std::strerror(errno));
        if (text.size() > most_bytes) fail(fmt::format("it has more than {} bytes", most_bytes));
    }
}

}  // namespace kbench
