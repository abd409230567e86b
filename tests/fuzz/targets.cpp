// The table of targets, and files in memory.
#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace kbench::fuzz {

std::span<const Target> targets() {
    static constexpr Target table[] = {
        {"arguments", arguments},     {"config", config},     {"index", index},     {"machine", machine},
        {"metrics", metrics},         {"npy", npy},           {"program", program}, {"result", result},
        {"safetensors", safetensors}, {"schedule", schedule}, {"scopes", scopes},   {"shapes", shapes},
        {"tokens", tokens},
    };
    return table;
}

std::filesystem::path as_file(std::string_view content) {
    static const int descriptor = memfd_create("input", 0);
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0) std::abort();
    for (std::size_t at = 0; at < content.size();) {
        const ssize_t written = pwrite(descriptor, content.data() + at, content.size() - at, static_cast<off_t>(at));
        if (written <= 0) std::abort();
        at += static_cast<std::size_t>(written);
    }
    return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace kbench::fuzz
