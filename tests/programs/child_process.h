// A part of a test in a process of its own, as an embedded profiler is there once a process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>

namespace kbench {

/// Runs `work` in a child that ends as a program does, with exit() of what `work` returns, in a new folder that lives
/// as long as this.
class ChildProcess {
  public:
    ChildProcess() {
        std::string name = (std::filesystem::temp_directory_path() / "kbench_embedded_XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) std::abort();
        folder_ = name;
    }
    ~ChildProcess() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    std::filesystem::path folder() const { return folder_; }
    void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
    std::string read(const std::string& name) const {
        std::ifstream file(folder_ / name);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    /// The exit code, or 128 and the signal that ended it. What it wrote on stderr is `err()`.
    int run(const std::function<int()>& work, const std::map<std::string, std::string>& environment = {}) const {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                     "KBENCH_PROFILE_SCHEDULE", "KBENCH_PROFILE_OUTPUT"})
                unsetenv(name);
            for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
            std::filesystem::current_path(folder_);
            if (std::freopen("stderr", "w", stderr) == nullptr) std::_Exit(99);
            std::exit(work());
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::string err() const { return read("stderr"); }

  private:
    std::filesystem::path folder_;
};

/// What a shell's command gave, both streams together.
struct Shell {
    int exit_code;
    std::string output;
};

inline Shell shell(const std::string& command) {
    std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    std::string output;
    std::array<char, 4096> part;
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
    return {pclose(pipe), output};
}

}  // namespace kbench
