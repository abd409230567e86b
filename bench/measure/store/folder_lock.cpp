// The lock is a file that stays: a lock of the kernel on it ends with its process, so none is left behind by a crash.
#include "bench/measure/store/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {

FolderLock::FolderLock(const std::filesystem::path& out) {
    const std::string file = (out / lock_name).string();
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw UsageError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
    // A file system without locks gets none; every other failure is another process at work.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(descriptor_);
        throw UsageError(fmt::format("--out {}: another kbench is writing into it", out.string()));
    }
    remove_abandoned_files(out);
}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace kbench
