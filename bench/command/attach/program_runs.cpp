// Settings go through the environment, as the program's own children shall have them, too.
#include "bench/command/attach/program_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

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

/// So long may a pass take: counting costs milliseconds a range, and a pass that hangs never ends.
std::int64_t most_pass_seconds(const ProgramLaunches& process) {
    constexpr double least = 20, of_iteration = 200, of_range = 0.02;
    return std::llround(least + of_iteration * process.iteration_ms / 1e3 +
                        of_range * static_cast<double>(process.ranges));
}

/// What a process is told of its launches: by its rank, where it has one of its own.
void add_launches(std::vector<std::string>& variables, const ProgramLaunches& process, const RunSettings& settings) {
    // Processes without ranks are all told the same, which is right where they do the same.
    if (!process.process.rank && process.process.number > 0) return;
    const auto add = [&](std::string_view name, const auto& value) {
        const std::string rank = process.process.rank ? fmt::format("_{}", *process.process.rank) : "";
        variables.push_back(fmt::format("KBENCH_ATTACH_{}{}={}", name, rank, value));
    };
    const bool counts = settings.purpose == "counters";
    add("FIRST", process.first);
    add("PERIOD", !process.repeats() || (counts && !process.uncounted.empty()) ? 0 : process.count);
    if (counts) {
        add("RANGES", process.ranges);
        add("RANGES_OF_CALLS", process.ranges_of_calls ? 1 : 0);
        add("WAITING", fmt::format("{}", fmt::join(process.waiting, ",")));
        add("MOST_PASS_SECONDS", most_pass_seconds(process));
    }
    if (settings.hears_rarest) {
        add("CALL", process.rarest);
        add("CALL_FIRST", process.rarest_first);
        add("CALL_PERIOD", process.rarest_count);
    }
}

/// Why a program failed: what its processes noted of it, else what it wrote last.
std::string said_last(const std::vector<ProgramFile>& files, const Finished& finished) {
    for (const ProgramFile& file : files)
        for (const std::string& note : file.notes)
            if (note.starts_with(nothing_was_counted)) return note;
    return finished.last_line.empty() ? "without a word" : finished.last_line;
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

FinishedRun ProgramRunner::run(const RunSettings& settings) {
    const fs::path folder = folder_ / fmt::format("{}-{}", ++runs_, settings.purpose);
    make_new_folder(folder);
    std::vector<std::string> variables{
        "KBENCH_ATTACH=1",
        "KBENCH_ATTACH_PURPOSE=" + settings.purpose,
        "KBENCH_ATTACH_DIR=" + folder.string(),
        "CUDA_INJECTION64_PATH=" + library_.string(),
        fmt::format("KBENCH_ATTACH_BLOCK={}", settings.block),
        fmt::format("KBENCH_ATTACH_COUNTERS={}", fmt::join(settings.counters, ",")),
    };
    for (const ProgramLaunches& process : settings.launches) add_launches(variables, process, settings);
#ifdef KBENCH_HAVE_CUDA  // the library needs CUPTI, and CUPTI opens others by their names
    if (const fs::path cupti = cuda::cupti_folder(); !cupti.empty())
        variables.push_back(with_folder("LD_LIBRARY_PATH", cupti, false));
#endif
    if (settings.purpose == "names") {
        variables.push_back("NVTX_INJECTION64_PATH=" + library_.string());
        if (!hook_.empty()) variables.push_back(with_folder("PYTHONPATH", hook_, true));
    }
    const fs::path log = folder / "log.txt";
    const Finished finished =
        run_child(command_.front(), {command_.begin() + 1, command_.end()}, log, Logged::all, variables);
    FinishedRun run;
    std::error_code error;
    bool wrote = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
        wrote = wrote || entry.path().extension() == ".jsonl";
    try {
        if (wrote) run.files = read_program_files(folder)[settings.purpose];
    } catch (const UsageError& malformed) {
        run.failure = malformed.what();
    }
    if (finished.exit_code != 0)
        run.failure = fmt::format("{} failed with exit code {} in the run for {}: {}", command_.front(),
                                  finished.exit_code, settings.purpose, said_last(run.files, finished));
    else if (!wrote)
        run.failure = fmt::format("{} did nothing on a GPU in the run for {}: its output is in {}", command_.front(),
                                  settings.purpose, log.string());
    return run;
}

}  // namespace kbench
