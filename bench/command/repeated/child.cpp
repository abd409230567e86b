// Starts a program with its output in files, waits for its end, and reads its result.
#include "bench/command/repeated/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

/// The program gets a session of its own: a stop reaches its whole process group, and one from the terminal does not
/// reach it twice. SIGPIPE, which kbench ignores, is as usual, since a shell could not take that back.
class Attributes {
  public:
    Attributes() {
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
        sigset_t usual;
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE);
        posix_spawnattr_setsigdefault(&attributes_, &usual);
    }
    ~Attributes() { posix_spawnattr_destroy(&attributes_); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    const posix_spawnattr_t* get() const { return &attributes_; }

  private:
    posix_spawnattr_t attributes_;
};

/// Copies what is written into a pipe to a file, until it is destroyed and the pipe is empty. Programs write into the
/// pipe and not the file, since who opens /dev/stderr anew would empty that.
class PipeToFile {
  public:
    explicit PipeToFile(int file) : file_(file) {
        if (pipe2(ends_, O_CLOEXEC) != 0) throw MeasurementError(fmt::format("no pipe: {}", std::strerror(errno)));
        copies_ = std::jthread([this](const std::stop_token& ended) { copy(ended); });
    }
    ~PipeToFile() {
        copies_.request_stop();
        if (copies_.joinable()) copies_.join();
        close(ends_[0]);
        close(ends_[1]);
    }
    PipeToFile(const PipeToFile&) = delete;
    PipeToFile& operator=(const PipeToFile&) = delete;
    int descriptor() const { return ends_[1]; }
    /// Waits for what is in the pipe. Throws MeasurementError where the file did not take all of it.
    void finish() {
        copies_.request_stop();
        copies_.join();
        if (error_ != 0) throw MeasurementError(fmt::format("a log cannot be written: {}", std::strerror(error_)));
    }

  private:
    void copy(const std::stop_token& ended) {
        constexpr int look_ms = 5;
        std::array<char, 65536> bytes;  // a pipe holds no more: what comes later is of a program that left the group
        for (bool is_last = false; !is_last;) {
            is_last = ended.stop_requested();
            pollfd readable{ends_[0], POLLIN, 0};
            if (poll(&readable, 1, is_last ? 0 : look_ms) <= 0) continue;
            const ssize_t count = read(ends_[0], bytes.data(), bytes.size());
            for (ssize_t done = 0; done < count;) {
                const ssize_t written = write(file_, bytes.data() + done, static_cast<std::size_t>(count - done));
                if (written < 0) {
                    error_ = errno;
                    break;
                }
                done += written;
            }
        }
    }

    int file_;
    int ends_[2] = {}, error_ = 0;
    std::jthread copies_;
};

/// This process's environment without what kbench put there for itself, and with `own`, which must outlive it.
std::vector<char*> environment(std::vector<std::string>& own) {
    const auto is_replaced = [&own](std::string_view name) {
        return std::ranges::any_of(own, [&](const std::string& variable) {
            return variable.starts_with(name) && variable.substr(name.size()).starts_with("=");
        });
    };
    const bool core_is_ours = std::getenv(cpu::blas_core_is_ours) != nullptr;
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable), name = text.substr(0, text.find('='));
        if (core_is_ours && (name == cpu::blas_core_variable || name == cpu::blas_core_is_ours)) continue;
        if (!is_replaced(name)) variables.push_back(*variable);
    }
    for (std::string& variable : own) variables.push_back(variable.data());
    variables.push_back(nullptr);
    return variables;
}

using Clock = std::chrono::steady_clock;

/// Waits until `child` has ended, whose process group gets the stop that this process is asked for, and returns when
/// that was. It is left to be reaped; what it left behind and ends meanwhile is reaped, as init would.
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
    for (;;) {
        siginfo_t info{};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) {
            if (errno == EINTR) continue;
            throw MeasurementError(fmt::format("how the program ended is not known: {}", std::strerror(errno)));
        }
        if (info.si_pid == child) return Clock::now();
        waitpid(info.si_pid, nullptr, WNOHANG);
    }
}

/// Reaps what ends, `child` too, whose status goes to `status`. Whether everything in its process group ends within a
/// second. What has lost its parent is this process's child (PR_SET_CHILD_SUBREAPER).
bool ends_soon(pid_t child, int& status) {
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    for (;;) {
        int its_status = 0;
        const pid_t ended = waitpid(-child, &its_status, WNOHANG);
        if (ended == child) status = its_status;
        if (ended < 0 && errno != EINTR) return true;
        if (Clock::now() > deadline) return false;
        if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/// The status of `child`, which has ended. What it leaves behind in its group may still write what it was given, as
/// `tee` does, and then would run beside the next program: it has a second to end by itself, and is ended then.
int end_group(pid_t child) {
    int status = 0;
    for (const int signal : {0, SIGTERM, SIGKILL}) {
        if (signal != 0) kill(-child, signal);
        if (ends_soon(child, status)) break;
    }
    return status;
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
                   const std::filesystem::path& log, Logged logged, const std::vector<std::string>& variables) {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const NewFile output(log);
    Finished finished;
    {
        PipeToFile pipe(output.descriptor());
        FileActions actions;
        posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (logged == Logged::all)
            posix_spawn_file_actions_adddup2(actions.get(), pipe.descriptor(), STDOUT_FILENO);
        else
            posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(actions.get(), pipe.descriptor(), STDERR_FILENO);
        const Attributes attributes;
        std::vector<std::string> own = variables;
        const std::vector<char*> all_variables = environment(own);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        StopSignals::hold();
        const auto start = Clock::now();
        pid_t child = 0;
        const int error = posix_spawnp(&child, program.c_str(), actions.get(), attributes.get(), pointers.data(),
                                       all_variables.data());
        StopSignals::end_too(error == 0 ? child : 0);
        if (error != 0) {
            std::filesystem::remove(log);
            throw UsageError(fmt::format("{}: {}{}", program, std::strerror(error),
                                         error == ENOEXEC ? "; begin it with #!, as in #!/bin/sh" : ""));
        }
        const std::chrono::duration<double, std::milli> wall = wait_for_end(child) - start;
        const int status = end_group(child);
        StopSignals::end_too(0);
        finished.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        finished.wall_ms = wall.count();
        pipe.finish();
    }
    if (finished.exit_code != 0) finished.last_line = last_output_line(log);
    return finished;
}

bool is_program(const std::string& name) {
    const auto may_run = [](const std::filesystem::path& path) {
        std::error_code none;
        return std::filesystem::is_regular_file(path, none) && access(path.c_str(), X_OK) == 0;
    };
    if (name.find('/') != name.npos) return may_run(name);
    const char* path = std::getenv("PATH");
    std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
    for (;;) {  // an empty one is this folder
        const std::size_t colon = folders.find(':');
        if (may_run(std::filesystem::path(folders.substr(0, colon)) / name)) return true;
        if (colon == folders.npos) return false;
        folders.remove_prefix(colon + 1);
    }
}

void throw_if_stopped() {
    if (const int signal = StopSignals::asked(); signal != 0)
        throw MeasurementError(fmt::format("signal {} asked for it", signal));
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
    throw_if_stopped();
    if (finished.exit_code == static_cast<int>(ExitCode::usage)) throw UsageError(fmt::format("{}: {}", who, said));
    if (finished.exit_code != 0)
        throw MeasurementError(fmt::format("{} failed with exit code {}: {}", who, finished.exit_code, said));
    const std::filesystem::path file = result_file_in(directory);
    if (file.empty())
        throw MeasurementError(
            fmt::format("{} ended without a result: {}", who, last_output_line(directory / log_name)));
    Result result = read_result_file(file).result;
    keep_result_alone(directory);
    return result;
}

}  // namespace kbench
