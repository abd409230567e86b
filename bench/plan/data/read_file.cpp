// Reads a file whole, and what is no file, such as a pipe, once.
#include "bench/plan/data/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "bench/plan/data/descriptor.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// No file of text or tokens is larger; a device may give bytes for ever.
constexpr std::size_t most_bytes = std::size_t{1} << 32;
constexpr int patience_ms = 2000;  ///< before a user is told what is waited for

/// What was read of pipes and the like, by device, inode and name.
class ReadOnce {
  public:
    using Key = std::tuple<dev_t, ino_t, std::string>;
    const std::string* find(const Key& key) {
        const std::scoped_lock lock(mutex_);
        const auto found = contents_.find(key);
        return found == contents_.end() ? nullptr : &found->second;
    }
    void keep(const Key& key, const std::string& text) {
        const std::scoped_lock lock(mutex_);
        contents_.emplace(key, text);
    }

  private:
    std::mutex mutex_;
    std::map<Key, std::string> contents_;
};

ReadOnce& read_once() {
    static ReadOnce all;
    return all;
}

/// Waits until there is something to read, or the last writer has gone. Nothing catches a signal yet when inputs are
/// read, so SIGINT and SIGTERM end the wait with the process.
void wait_for_writer(int descriptor, const std::filesystem::path& path, bool& is_told) {
    pollfd wanted{descriptor, POLLIN, 0};
    while (poll(&wanted, 1, is_told ? -1 : patience_ms) <= 0 && (!is_told || errno == EINTR)) {
        if (!is_told)
            std::fputs(fmt::format("kbench: {}: waits for somebody to write into it\n", path.string()).c_str(), stderr);
        is_told = true;
    }
}

}  // namespace

std::string read_whole_file(const std::filesystem::path& path) {
    const auto fail = [&](const std::string& why) -> void {
        throw UsageError(fmt::format("{}: cannot be read: {}", path.string(), why));
    };
    // Otherwise opening a pipe would wait for a writer before any message.
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) fail(std::strerror(errno));
    if (S_ISDIR(status.st_mode)) fail("it is a directory");
    const bool comes_once = !S_ISREG(status.st_mode);
    const ReadOnce::Key key{status.st_dev, status.st_ino, path.string()};
    if (comes_once)
        if (const std::string* const before = read_once().find(key)) return *before;
    std::string text;
    bool is_told = false;
    // One byte more than it says: a file that ends there has ended. A pipe's size is unknown.
    const std::size_t chunk = std::clamp<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096, 1 << 20);
    for (;;) {
        if (comes_once) wait_for_writer(file.get(), path, is_told);
        const std::size_t before = text.size();
        text.resize(before + chunk);
        const ssize_t got = read(file.get(), text.data() + before, chunk);
        text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
        if (got == 0) break;
        if (got < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
        if (text.size() > most_bytes) fail(fmt::format("it has more than {} bytes", most_bytes));
    }
    if (comes_once) read_once().keep(key, text);
    return text;
}

}  // namespace kbench
