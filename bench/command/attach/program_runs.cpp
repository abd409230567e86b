// Settings go through the environment, as the program's own children shall have them, too.
#include "bench/command/attach/program_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "bench/command/repeated/child.h"
#include "kbench/error.h"
#include "models/base/write_file.h"
#ifdef KBENCH_HAVE_CUDA
#include "profile/cupti/cupti_host.h"
#endif

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// Beside the program, as it is built and as it is installed.
fs::path find_beside_program(std::initializer_list<const char*> places) {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const char* place : places)
        if (const fs::path path = folder / place; fs::exists(path, error)) return fs::canonical(path, error);
    return {};
}

/// NAME=value for a list of folders that gets one more, before or behind those that it has.
std::string with_folder(const char* name, const fs::path& folder, bool is_first) {
    const char* value = std::getenv(name);
    const std::string others = value != nullptr ? value : "";
    if (others.empty()) return fmt::format("{}={}", name, folder.string());
    return is_first ? fmt::format("{}={}:{}", name, folder.string(), others)
                    : fmt::format("{}={}:{}", name, others, folder.string());
}

}  // namespace

ProgramRunner::ProgramRunner(std::vector<std::string> command, fs::path folder)
    : command_(std::move(command)),
      folder_(fs::absolute(folder)),
      library_(
          find_beside_program({"../profile/libkbench_attach.so", "../" KBENCH_LIBRARY_FOLDER "/libkbench_attach.so"})),
      hook_(find_beside_program({"../profile/python", "../share/kbench/python"})) {
    if (library_.empty())
        throw UsageError(
            "libkbench_attach.so is not where this kbench was built or installed to: it was built without CUDA");
}

std::vector<ProgramFile> ProgramRunner::run(const RunSettings& settings) {
    const fs::path folder = folder_ / fmt::format("{}-{}", ++runs_, settings.purpose);
    make_new_folder(folder);
    const ProgramLaunches& calls = settings.calls;
    std::vector<std::string> variables{
        "KBENCH_ATTACH=1",
        "KBENCH_ATTACH_PURPOSE=" + settings.purpose,
        "KBENCH_ATTACH_DIR=" + folder.string(),
        "CUDA_INJECTION64_PATH=" + library_.string(),
        fmt::format("KBENCH_ATTACH_FIRST={}", calls.first),
        fmt::format("KBENCH_ATTACH_PERIOD={}", calls.count),
        fmt::format("KBENCH_ATTACH_BLOCK={}", settings.block),
        fmt::format("KBENCH_ATTACH_COUNTERS={}", fmt::join(settings.counters, ",")),
        fmt::format("KBENCH_ATTACH_GRAPHS={}", calls.graphs > 0 ? 1 : 0),
        fmt::format("KBENCH_ATTACH_RANGES={}", calls.graphs > 0 ? calls.graphs : calls.kernels),
    };
#ifdef KBENCH_HAVE_CUDA  // the library needs CUPTI, and CUPTI opens others by their names
    if (const fs::path cupti = cuda::cupti_folder(); !cupti.empty())
        variables.push_back(with_folder("LD_LIBRARY_PATH", cupti, false));
#endif
    if (settings.hears_rarest)
        variables.insert(variables.end(), {"KBENCH_ATTACH_CALL=" + calls.rarest,
                                           fmt::format("KBENCH_ATTACH_CALL_FIRST={}", calls.rarest_first),
                                           fmt::format("KBENCH_ATTACH_CALL_PERIOD={}", calls.rarest_count)});
    if (settings.purpose == "names") {
        variables.push_back("NVTX_INJECTION64_PATH=" + library_.string());
        if (!hook_.empty()) variables.push_back(with_folder("PYTHONPATH", hook_, true));
    }
    const fs::path log = folder / "log.txt";
    const Finished finished =
        run_child(command_.front(), {command_.begin() + 1, command_.end()}, log, Logged::all, variables);
    throw_if_stopped();
    if (finished.exit_code != 0)
        throw MeasurementError(fmt::format("{} failed with exit code {} in the run for {}: {}", command_.front(),
                                           finished.exit_code, settings.purpose,
                                           finished.last_line.empty() ? "without a word" : finished.last_line));
    std::error_code error;
    bool wrote = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
        wrote = wrote || entry.path().extension() == ".jsonl";
    if (!wrote)
        throw MeasurementError(
            fmt::format("{} did nothing on a GPU: its output is in {}", command_.front(), log.string()));
    return read_program_files(folder)[settings.purpose];
}

}  // namespace kbench
