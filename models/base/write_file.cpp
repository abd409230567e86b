// Files that are either complete or as they were: write beside the target, flush to the disk, rename over it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <regex>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

/// The id of the process that made a file called ".result.json.4711.0.tmp", as TemporaryFile calls them; 0: no such
/// file.
pid_t maker_of(const std::string& name) {
    static const std::regex pattern(R"(\..+\.([1-9][0-9]{0,8})\.[0-9]+\.tmp)");
    std::smatch parts;
    return std::regex_match(name, parts, pattern) ? std::stoi(parts[1]) : 0;
}

/// A new file beside the target, removed again unless it was renamed.
class TemporaryFile {
  public:
    /// The name is new even if a killed process with our id left one behind. Mode 0666 leaves the choice to the umask,
    /// which mkstemp's 0600 would not.
    explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
        if (const std::string why = why_not_a_file(target); !why.empty())
            throw UsageError(fmt::format("cannot write {}: {}", target.string(), why));
        for (int attempt = 0;; ++attempt) {
            path_ = target;
            path_.replace_filename(
                fmt::format(".{}.{}.{}.tmp", target.filename().string(), static_cast<long>(getpid()), attempt));
            descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (descriptor_ >= 0) return;
            if (errno != EEXIST) fail();
        }
    }
    ~TemporaryFile() {
        if (descriptor_ >= 0) close(descriptor_);
        if (!path_.empty()) unlink(path_.c_str());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    void append(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
            if (written >= 0)
                bytes = bytes.subspan(static_cast<std::size_t>(written));
            else if (errno != EINTR)
                fail();
        }
    }

    void rename_to_target() {
        if (fsync(descriptor_) != 0) fail();
        // Some file systems report a full disk only here.
        if (close(std::exchange(descriptor_, -1)) != 0) fail();
        if (std::rename(path_.c_str(), target_.c_str()) != 0) fail();
        path_.clear();
    }

  private:
    [[noreturn]] void fail() const {
        const int error = errno;  // before anything else can change it
        throw UsageError(fmt::format("cannot write {}: {}", target_.string(), std::strerror(error)));
    }

    std::filesystem::path target_, path_;
    int descriptor_ = -1;
};

}  // namespace

std::string why_not_a_file(const std::filesystem::path& path) {
    std::error_code none;  // what cannot be looked at cannot be written either, and says so then
    switch (std::filesystem::symlink_status(path, none).type()) {
        case std::filesystem::file_type::directory: return "it is a directory";
        case std::filesystem::file_type::symlink: return "it is a link; name the file that it leads to";
        case std::filesystem::file_type::block:
        case std::filesystem::file_type::character:
        case std::filesystem::file_type::fifo:
        case std::filesystem::file_type::socket: return "it is a device, a pipe or a socket";
        default: return "";
    }
}

void write_file_atomically(const std::filesystem::path& path, const std::string& text) {
    write_file_atomically(path, [&](const FileSink& sink) { sink(std::as_bytes(std::span(text))); });
}

void write_file_atomically(const std::filesystem::path& path, const std::function<void(const FileSink&)>& write) {
    TemporaryFile file(path);
    write([&](std::span<const std::byte> bytes) { file.append(bytes); });
    file.rename_to_target();
}

NewFile::NewFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw UsageError(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
}

NewFile::~NewFile() { close(descriptor_); }

void make_new_folder(const std::filesystem::path& path) {
    if (mkdir(path.c_str(), 0777) != 0)
        throw UsageError(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
}

bool stands(const std::filesystem::path& path) {
    std::error_code none;
    return std::filesystem::exists(std::filesystem::symlink_status(path, none));
}

void put_aside(const std::filesystem::path& path) {
    std::filesystem::path aside = path;
    aside += ".unreadable";
    for (int copy = 2; stands(aside); ++copy) {
        aside = path;
        aside += fmt::format(".unreadable-{}", copy);
    }
    std::error_code none;
    std::filesystem::rename(path, aside, none);
}

void remove_abandoned_files(const std::filesystem::path& folder) {
    std::error_code none;  // another process may remove the same
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const pid_t maker = entry.is_regular_file(none) ? maker_of(entry.path().filename().string()) : 0;
        if (maker != 0 && kill(maker, 0) != 0 && errno == ESRCH) std::filesystem::remove(entry.path(), none);
    }
}

}  // namespace kbench
