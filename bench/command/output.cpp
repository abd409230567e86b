// Directories and warnings of results.
#include "bench/command/output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "bench/measure/point_store.h"
#include "bench/measure/result_files.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// A model is called as its file says, which may be a path: of that what may stand in a file's name, and not too long.
std::string as_file_name(std::string what) {
    constexpr std::size_t longest = 80;
    const auto is_safe = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    };
    std::ranges::replace_if(
        what, [&](char c) { return !is_safe(c); }, '_');
    what.resize(std::min(what.size(), longest));
    return what;
}

/// kbench-runs/<time>-<what>, with a number where another run began in the same second.
std::filesystem::path new_directory(const std::string& what) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const std::filesystem::path parent = "kbench-runs";
    const std::string name = fmt::format("{:%Y-%m-%dT%H%M%S}-{}", fmt::localtime(now), as_file_name(what));
    std::error_code error;
    std::filesystem::create_directories(parent, error);
    for (int run = 1; !error; ++run) {
        const std::filesystem::path path = parent / (run == 1 ? name : fmt::format("{}-{}", name, run));
        if (std::filesystem::create_directory(path, error)) return path;  // false without an error: it exists
    }
    return parent / name;  // the caller reports that it cannot be made
}

}  // namespace

std::filesystem::path prepare_directory(const std::filesystem::path& asked, const std::string& what, bool resume) {
    const std::filesystem::path path = asked.empty() ? new_directory(what) : asked;
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw UsageError(fmt::format("--out {}: {}", path.string(), error.message()));
    if (access(path.c_str(), W_OK) != 0)
        throw UsageError(fmt::format("--out {}: the directory cannot be written", path.string()));
    const bool has_points = holds_points(path);
    if (const std::filesystem::path file = result_file_in(path); !file.empty() && !(resume && has_points))
        throw UsageError(fmt::format("--out {}: holds a {} already{}; choose another directory or move it away",
                                     path.string(), file.filename().string(),
                                     resume ? " and no points to go on from" : ""));
    if (has_points && !resume)
        throw UsageError(
            fmt::format("--out {}: holds finished points of a sweep already; --resume goes on with it, or "
                        "choose another directory",
                        path.string()));
    return path;
}

void add_run_warnings(Result& result, const Device& device, const std::string& remark, bool verified) {
    if (!remark.empty()) result.warnings.push_back(remark);
    if (!device.is_gpu() && !device.info().pinned)
        result.warnings.push_back("threads could not be pinned to cores: times may vary more");
    if (result.environment.build_type != "Release" && result.environment.build_type != "RelWithDebInfo")
        result.warnings.push_back("this is a " + result.environment.build_type +
                                  " build: CPU times are not to be trusted");
    if (!verified) result.warnings.push_back("--no-verify: no step was checked against the reference");
}

}  // namespace kbench
