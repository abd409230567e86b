// See child.h.
#include "bench/command/repeated/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "bench/measure/result_files.h"
#include "bench/measure/stop_signal.h"
#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

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

std::string last_line_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string line, last;
    while (std::getline(in, line))
        if (!line.empty()) last = line;
    return one_line(last);
}

int wait_for(pid_t child) {
    int status = 0;
    bool passed_on = false;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        if (const int signal = StopSignals::asked(); signal != 0 && !passed_on) {
            kill(child, signal);
            passed_on = true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (ended < 0) throw MeasurementError(fmt::format("how the program ended is not known: {}", std::strerror(errno)));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Finished run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log) {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    FileActions actions;
    posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    pid_t child = 0;
    if (const int error = posix_spawnp(&child, program.c_str(), actions.get(), nullptr, pointers.data(), environ))
        throw UsageError(fmt::format("{}: {}", program, std::strerror(error)));
    Finished finished{.exit_code = wait_for(child), .last_line = {}};
    finished.last_line = last_line_of(log);
    return finished;
}

Result run_for_result(const std::string& who, const std::string& program, std::vector<std::string> arguments,
                      const std::filesystem::path& directory) {
    arguments.insert(arguments.end(), {"--compress", "--out", directory.string()});
    std::filesystem::create_directories(directory);
    const Finished finished = run_child(program.empty() ? "/proc/self/exe" : program, arguments, directory / "log.txt");
    const std::string said = finished.last_line.empty() ? "without a word" : finished.last_line;
    if (StopSignals::asked() != 0) throw MeasurementError(fmt::format("signal {} asked for it", StopSignals::asked()));
    if (finished.exit_code == static_cast<int>(ExitCode::usage)) throw UsageError(fmt::format("{}: {}", who, said));
    if (finished.exit_code != 0)
        throw MeasurementError(fmt::format("{} failed with exit code {}: {}", who, finished.exit_code, said));
    const std::filesystem::path file = result_file_in(directory);
    if (file.empty()) throw MeasurementError(fmt::format("{} ended without a result: {}", who, said));
    for (const std::filesystem::directory_entry& other : std::filesystem::directory_iterator(directory))
        if (other.path() != file) std::filesystem::remove_all(other.path());
    return read_result_file(file).result;
}

}  // namespace kbench
