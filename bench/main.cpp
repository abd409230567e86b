// The command line's entry: finds the command, and turns every error into one line and an exit code, here and only
// here.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "bench/command/command.h"
#include "bench/device/console.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/point/stop_signal.h"
#include "cpu/blas.h"
#include "cpu/threads.h"
#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/nearest.h"
#include "models/registry.h"

namespace kbench {

namespace {

void print_help() {
    put("kbench: why does this model take this long on this machine?\n\n");
    put("  kbench --model gpt2-large --seq 1024        the same as kbench run --model ...\n\n");
    for (const Command& command : commands()) put("  kbench {:<10} {}\n", command.name, command.what);
    put("\n`kbench help COMMAND` lists a command's options; `kbench --version` says what this is.\n");
    put("Exit codes: 0 done; 1 a verification or measurement failed; 2 bad usage or input; 3 device missing.\n");
}

/// Starts the program again with OpenBLAS told which kernels to use, where it did not know the CPU: it reads its
/// environment when it is loaded, and never again.
void restart_where_blas_misjudged(char** argv) {
    if (std::getenv(cpu::blas_core_variable) != nullptr) return;
    const std::string better = cpu::better_blas_core(cpu::blas_core(), cpu::cpu_info().isa);
    if (better.empty() || setenv(cpu::blas_core_variable, better.c_str(), 1) != 0) return;
    setenv(cpu::blas_core_is_ours, "1", 1);
    execv("/proc/self/exe", argv);
}

int dispatch(const std::vector<std::string>& arguments, const std::string& command_line) {
    if (arguments.size() == 2 && arguments[0] == "help" && !arguments[1].starts_with("-"))
        return dispatch({arguments[1], "--help"}, command_line);
    if (arguments.size() > 2 && arguments[0] == "help")
        throw UsageError("help: name one command, as in `kbench help run`");
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
        print_help();
        return static_cast<int>(ExitCode::success);
    }
    if (arguments[0] == "--version" || arguments[0] == "-V") {
        put("{}\n", version_text());
        return static_cast<int>(ExitCode::success);
    }
    if (arguments[0].starts_with("-")) return run_command(arguments, command_line);
    for (const Command& command : commands())
        if (command.name == arguments[0]) return command.run({arguments.begin() + 1, arguments.end()}, command_line);
    if (is_builtin_model(arguments[0]))
        throw UsageError(fmt::format("'{0}' is a model, not a command: kbench --model {0}", arguments[0]));
    if (arguments[0] == "version") throw UsageError("unknown command 'version'; did you mean --version?");
    throw UsageError(
        fmt::format("unknown command '{}'; {}", arguments[0], nearest_name(arguments[0], commands(), &Command::name)));
}

}  // namespace

int run_program(int argc, char** argv) {
    open_standard_streams();
    tell_of_stop_signals();
    restart_where_blas_misjudged(argv);
    std::string command_line = "kbench";
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    for (const std::string& argument : arguments) command_line += " " + argument;
    int code = static_cast<int>(ExitCode::failed);
    try {
        code = dispatch(arguments, command_line);
    } catch (const Error& error) {
        say("kbench: {}\n", one_line(error.what()));
        code = static_cast<int>(error.code());
    } catch (const std::filesystem::filesystem_error& error) {  // a path that nobody can be: too long, a loop
        say("kbench: {}: {}\n", one_line(error.path1().string()), error.code().message());
        code = static_cast<int>(ExitCode::usage);
    } catch (const std::bad_alloc&) {
        say("kbench: the host has not enough memory\n");
    } catch (const std::exception& error) {
        say("kbench: internal error: {}\n", one_line(error.what()));
    }
    if (const std::string why = output_failure(); !why.empty()) {
        say("kbench: standard output cannot be written: {}\n", why);
        if (code == static_cast<int>(ExitCode::success)) code = static_cast<int>(ExitCode::failed);
    }
    return code;
}

}  // namespace kbench

int main(int argc, char** argv) { return kbench::run_program(argc, argv); }
