// Starts a program with its output in files, waits for its end, and reads its result.
#include "bench/command/repeated/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "bench/command/command.h"
#include "bench/command/repeated/output_lines.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/store/folder_lock.h"
#include "bench/measure/store/result_files.h"
#include "cpu/blas.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

constexpr std::string_view log_name = "log.txt";

class FileActions {
  public:
    FileActions() { posix_spawn_file_actions_init(&actions_); }
    ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    posix_spawn_file_actions_t* get() { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_;
};

/// Holds back the signals that ask for a stop, so that none comes between a program's start and the note of it.
class StopsHeldBack {
  public:
    StopsHeldBack() {
        sigset_t stops;
        sigemptyset(&stops);
        for (const int signal : StopSignals::all()) sigaddset(&stops, signal);
        pthread_sigmask(SIG_BLOCK, &stops, &before_);
    }
    ~StopsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    StopsHeldBack(const StopsHeldBack&) = delete;
    StopsHeldBack& operator=(const StopsHeldBack&) = delete;
    const sigset_t& before() const { return before_; }

  private:
    sigset_t before_;
};

/// The program gets a session of its own: a stop reaches its whole process group, and one from the terminal does not
/// reach it twice. SIGPIPE, which kbench ignores, is as usual, since a shell could not take that back.
class Attributes {
  public:
    explicit Attributes(const sigset_t& mask) {
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        sigset_t usual;
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE);
        posix_spawnattr_setsigdefault(&attributes_, &usual);
        posix_spawnattr_setsigmask(&attributes_, &mask);
    }
    ~Attributes() { posix_spawnattr_destroy(&attributes_); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    const posix_spawnattr_t* get() const { return &attributes_; }

  private:
    posix_spawnattr_t attributes_;
};

/// This process's environment without what kbench put there for itself.
std::vector<char*> environment() {
    const bool core_is_ours = std::getenv(cpu::blas_core_is_ours) != nullptr;
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable), name = text.substr(0, text.find('='));
        if (core_is_ours && (name == cpu::blas_core_variable || name == cpu::blas_core_is_ours)) continue;
        variables.push_back(*variable);
    }
    variables.push_back(nullptr);
    return variables;
}

using Clock = std::chrono::steady_clock;

/// Waits until `child` has ended, whose process group gets the stop that this process is asked for, and returns when
/// that was. It is left to be reaped, so that its number stays its own while signals may go to it.
Clock::time_point wait_for_end(pid_t child) {
    const std::jthread passes_stops_on([child](const std::stop_token& ended) {
        while (!ended.stop_requested()) {
            if (const int signal = StopSignals::asked(); signal != 0) {
                kill(-child, signal);
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    });
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            throw MeasurementError(fmt::format("how the program ended is not known: {}", std::strerror(errno)));
    return Clock::now();
}

/// Whether everything in the process group `group` ends within a second. What has lost its parent is this process's
/// child (PR_SET_CHILD_SUBREAPER).
bool ends_soon(pid_t group) {
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    for (;;) {
        const pid_t ended = waitpid(-group, nullptr, WNOHANG);
        if (ended < 0 && errno != EINTR) return true;
        if (Clock::now() > deadline) return false;
        if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/// What a program leaves behind in its group may still write what it was given, as `tee` does, and then would run
/// beside the next program: it has a second to end by itself, and is ended then.
void end_group(pid_t group) {
    for (const int signal : {0, SIGTERM, SIGKILL}) {
        if (signal != 0) kill(-group, signal);
        if (ends_soon(group)) return;
    }
}

/// Removes what a kbench writes into `directory` beside its result. What anybody else put there stays, and no link is
/// followed.
void keep_result_alone(const std::filesystem::path& directory) {
    namespace fs = std::filesystem;
    std::error_code ignored;  // what stays does no harm
    std::vector<fs::path> written{directory / log_name, directory / lock_name};
    for (const ReportFormat& report : report_formats()) written.push_back(directory / report.file);
    if (const fs::path points = directory / points_folder; fs::is_directory(fs::symlink_status(points, ignored))) {
        for (const fs::path& point : point_files(points)) written.push_back(point);
        written.push_back(points / ".lock");  // older versions locked the points alone
        written.push_back(points);
    }
    for (const fs::path& path : written) fs::remove(path, ignored);  // a folder only where it is empty
}

}  // namespace

Finished run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log, Logged logged) {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const NewFile output(log);
    fcntl(output.descriptor(), F_SETFL, O_APPEND);  // who opens /dev/stderr anew writes behind what is there
    FileActions actions;
    posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (logged == Logged::all)
        posix_spawn_file_actions_adddup2(actions.get(), output.descriptor(), STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(actions.get(), output.descriptor(), STDERR_FILENO);
    const std::vector<char*> variables = environment();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = 0;
    int error = 0;
    Clock::time_point start;
    {
        const StopsHeldBack held;
        const Attributes attributes(held.before());
        start = Clock::now();
        error =
            posix_spawnp(&child, program.c_str(), actions.get(), attributes.get(), pointers.data(), variables.data());
        if (error == 0) StopSignals::end_too(child);
    }
    if (error != 0) {
        std::filesystem::remove(log);
        throw UsageError(fmt::format("{}: {}{}", program, std::strerror(error),
                                     error == ENOEXEC ? "; begin it with #!, as in #!/bin/sh" : ""));
    }
    const Clock::time_point end = wait_for_end(child);
    StopSignals::end_too(0);
    int status = 0;
    waitpid(child, &status, 0);
    end_group(child);
    const std::chrono::duration<double, std::milli> wall = end - start;
    Finished finished{.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                      .last_line = {},
                      .wall_ms = wall.count()};
    if (finished.exit_code != 0) finished.last_line = last_output_line(log);
    return finished;
}

Result run_for_result(const std::string& who, const std::string& program, std::vector<std::string> arguments,
                      const std::filesystem::path& directory) {
    arguments.insert(arguments.end(), {"--compress", "--out", directory.string()});
    make_new_folder(directory);
    Finished finished;
    try {
        finished = run_child(program.empty() ? "/proc/self/exe" : program, arguments, directory / log_name);
    } catch (const UsageError&) {  // there is no such program: its folder would refuse the corrected command
        std::filesystem::remove(directory);
        throw;
    }
    const std::string said = finished.last_line.empty() ? "without a word" : finished.last_line;
    if (StopSignals::asked() != 0) throw MeasurementError(fmt::format("signal {} asked for it", StopSignals::asked()));
    if (finished.exit_code == static_cast<int>(ExitCode::usage)) throw UsageError(fmt::format("{}: {}", who, said));
    if (finished.exit_code != 0)
        throw MeasurementError(fmt::format("{} failed with exit code {}: {}", who, finished.exit_code, said));
    const std::filesystem::path file = result_file_in(directory);
    if (file.empty()) throw MeasurementError(fmt::format("{} ended without a result: {}", who, said));
    Result result = read_result_file(file).result;
    keep_result_alone(directory);
    return result;
}

}  // namespace kbench
