// Directories and warnings of results.
#include "bench/command/output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "bench/command/command.h"
#include "bench/command/option_values.h"
#include "bench/measure/store/point_store.h"
#include "bench/measure/store/result_files.h"
#include "bench/measure/sweep/lengths.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

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

/// The runs that the finished points and the result in `out` tell of. What cannot be read is measured again.
std::vector<Environment> earlier_runs(const std::filesystem::path& out) {
    std::vector<std::filesystem::path> files = point_files(out / points_folder);
    if (const std::filesystem::path file = result_file_in(out); !file.empty()) files.push_back(file);
    std::vector<Environment> runs;
    for (const std::filesystem::path& file : files) {
        try {
            runs.push_back(read_result_file(file).result.environment);
        } catch (const UsageError&) {
        }
    }
    return runs;
}

}  // namespace

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

void refuse_what_stands(const std::filesystem::path& path, bool resume) {
    namespace fs = std::filesystem;
    const auto refuse = [&](const std::string& why) {
        throw UsageError(fmt::format("--out {}: {}", path.string(), why));
    };
    std::error_code none;
    const fs::path points = path / points_folder;
    if (stands(points) && !fs::is_directory(fs::symlink_status(points, none)))
        refuse(fmt::format("{} is a link or a file; choose another directory or move it away", points_folder));
    const bool has_points = holds_points(path);
    if (const fs::path file = result_file_in(path); !file.empty() && !(resume && has_points))
        refuse(fmt::format("holds a {} already{}; choose another directory or move it away", file.filename().string(),
                           resume ? " and no points to go on from" : ""));
    if (resume && has_points) return refuse_other_reports(path, earlier_runs(path));
    if (has_points)
        refuse("holds finished points of a sweep already; --resume goes on with it, or choose another directory");
    for (const auto& entry : fs::directory_iterator(path, none)) {
        const std::string name = entry.path().filename().string();
        if (!is_written_name(name) || name == points_folder || name == lock_name) continue;
        // A run that was stopped in its first point left lengths; another will draw the same, or say that it does not.
        if (is_lengths_name(name) && why_not_a_file(entry.path()).empty()) continue;
        refuse(fmt::format("holds a {} already; choose another directory or move it away", name));
    }
}

bool is_written_name(const std::string& name) {
    const auto is_report = [&](const ReportFormat& format) { return format.file == name; };
    return is_result_name(name) || name == points_folder || name == lock_name || is_lengths_name(name) ||
           std::ranges::any_of(report_formats(), is_report);
}

bool is_written_into(const std::filesystem::path& out, const std::filesystem::path& file) {
    const std::filesystem::path name = file.filename();
    return (is_written_name(name.string()) && is_same_file(file, out / name)) ||
           is_same_file(file.parent_path(), out / points_folder);
}

OutputDirectory prepare_directory(const std::filesystem::path& asked, const std::string& what, bool resume) {
    const std::filesystem::path path = asked.empty() ? new_directory(what) : asked;
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw UsageError(fmt::format("--out {}: {}", path.string(), error.message()));
    if (access(path.c_str(), W_OK) != 0)
        throw UsageError(fmt::format("--out {}: the directory cannot be written", path.string()));
    refuse_what_stands(path, resume);
    FolderLock lock(path);
    refuse_what_stands(path, resume);  // that another kbench wrote until it let go of the lock
    return {path, std::move(lock)};
}

void add_run_warnings(Result& result, const Device& device, const std::string& remark, bool verified) {
    if (!remark.empty()) result.warnings.push_back(remark);
    for (const std::string& warning : device.info().warnings) result.warnings.push_back(warning);
    if (!device.is_gpu() && !device.info().pinned)
        result.warnings.push_back("threads could not be pinned to cores: times may vary more");
    if (result.environment.build_type != "Release" && result.environment.build_type != "RelWithDebInfo")
        result.warnings.push_back("this is a " + result.environment.build_type +
                                  " build: CPU times are not to be trusted");
#ifdef KBENCH_KERNELS_NOT_OPTIMISED
    if (device.is_gpu())
        result.warnings.push_back(
            "this build's kernels are not optimised (KBENCH_OPTIMISE_KERNELS=OFF): GPU times are not to be trusted");
#endif
    if (!verified) result.warnings.push_back("--no-verify: no step was checked against the reference");
}

}  // namespace kbench
