// What surrounds a run: signals at any time, narrow terminals, a machine without /proc, folders that cannot be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench/device/device.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Surroundings : public Program {
  protected:
    std::string program() const {
        return "KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " KBENCH_BINARY " ";
    }
    std::string out() const { return (directory_ / "run").string(); }
    /// A small sweep on the CPU, but for its roofs.
    std::string sweep() { return "--config " + tiny_config() + " --backend cpu --quick --out " + out(); }
    /// The sweep with `options`, which gets `signal` after `moment`, where $p is its process. A shell says something of
    /// its own of who ends by a signal, and lets its background jobs ignore SIGINT. Whoever starts the tests may have
    /// them ignore SIGHUP.
    Outcome signalled(const std::string& options, int signal, const std::string& moment) {
        const std::string own = (directory_ / "own").string();
        fs::remove(own);
        Outcome outcome = shell("(env --default-signal=INT,HUP " + program() + sweep() + " " + options + " 2>" + own +
                                " & p=$!; " + moment + "; kill -" + std::to_string(signal) + " $p; wait $p)");
        outcome.err = read_text(own);
        return outcome;
    }
    /// In a world of its own, which `prepare` changes: nothing of it stays.
    Outcome apart(const std::string& prepare, const std::string& command) {
        const std::string script = directory_.write("apart.sh", prepare + "\n" + command + "\n").string();
        return shell("unshare --map-root-user --mount sh " + script);
    }
    bool can_be_apart() { return apart("mount -t tmpfs none /mnt", "true").exit_code == 0; }
};

TEST_F(Surroundings, ASignalWhileRoofsAreMeasuredEndsWithOneLineAndNothingHalfWritten) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        fs::remove_all(out());
        // The directory is held just before roofs are measured.
        const Outcome outcome =
            signalled("--ceilings measure", signal,
                      "until [ -e " + out() + "/.kbench.lock ] || ! kill -0 $p; do sleep 0.01; done; sleep 0.2");
        EXPECT_EQ(outcome.exit_code, 128 + signal);
        EXPECT_EQ(outcome.err, std::string("kbench: stopped by SIG") + sigabbrev_np(signal) + "\n");
        EXPECT_EQ(outcome.out, "");
        EXPECT_FALSE(fs::exists(directory_ / "cache/ceilings.json")) << "nobody measured all of them";
        EXPECT_FALSE(fs::exists(fs::path(out()) / "result.json"));
    }
}

/// With fewer threads than cores a kernel or a library that splits its work by the cores leaves parts of it undone, or
/// waits for ever.
TEST_F(Surroundings, WhatOpenMPIsToldOfThreadsChangesNoResult) {
    const auto kbench_in = [&](const std::string& variables, const std::string& arguments) {
        return shell("env " + variables + " timeout -k 2 60 env " + program() + arguments);
    };
    const auto first_loss = [&](const std::string& variables) {
        const Outcome outcome = kbench_in(
            variables, "train --config " + tiny_config() + " --backend cpu --seq 16 --batch 4 --steps 1 --log-every 1");
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        const std::string before = "  loss ";
        const std::size_t at = outcome.out.find(before);
        return at == std::string::npos ? 0 : std::atof(outcome.out.c_str() + at + before.size());
    };
    const double usual = first_loss("");
    EXPECT_GT(usual, 0);
    for (const char* variables : {"OMP_THREAD_LIMIT=1", "OMP_THREAD_LIMIT=2", "OMP_DYNAMIC=true", "OMP_NUM_THREADS=1",
                                  "OMP_DYNAMIC=true OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=3"}) {
        SCOPED_TRACE(variables);
        EXPECT_NEAR(first_loss(variables), usual, 2e-4) << "its last digit may be rounded otherwise";
        for (const char* provider : {"blas", "onednn"}) {
            const Outcome gemm = kbench_in(
                variables,
                "micro --op gemm --shape m256n256k256 --precision fp32 --backend cpu --cache hot --ceilings none --counters none --time-budget 0.1 --out " +
                    out() + " --provider " + provider);
            EXPECT_EQ(gemm.exit_code, 0) << provider << gemm.err;
            const bool alone = std::string_view(variables).find("LIMIT=1") != std::string_view::npos;
            if (alone && provider == std::string_view("blas")) {
                EXPECT_THAT(gemm.out, HasSubstr(", 1 thread"));
            }
            fs::remove_all(out());
        }
    }
}

TEST_F(Surroundings, ASignalAtTheVeryStartLeavesNothingHalfWritten) {
    for (const char* after : {"0", "0.01", "0.03", "0.1"}) {
        fs::remove_all(out());
        const Outcome outcome = signalled("--ceilings none --repeat 100", SIGTERM, std::string("sleep ") + after);
        EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << after << ": " << outcome.err;
        // Before `main` nothing can be said, and nothing is there.
        EXPECT_THAT(outcome.err, testing::AnyOf("", HasSubstr("kbench: stopped by SIGTERM"))) << after;
        if (!fs::exists(out())) continue;
        for (const auto& entry : fs::recursive_directory_iterator(out()))
            EXPECT_TRUE(entry.path().extension() != ".json" || nlohmann::json::accept(read_text(entry.path())))
                << entry.path();
    }
}

/// What a program writes to a terminal of so many columns.
std::string on_terminal(unsigned short columns, const std::string& command) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t read_now = 0; (read_now = read(terminal, piece.data(), piece.size())) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(read_now));
    close(terminal);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0) << text;
    return text;
}

TEST_F(Surroundings, ProgressFitsIntoANarrowTerminal) {
    const std::string command = program() + sweep() + " --ceilings none >/dev/null";
    for (const unsigned short columns : {20, 1}) {
        fs::remove_all(out());
        const std::string text = on_terminal(columns, command);
        std::size_t shown = 0;
        std::stringstream parts(text.substr(0, text.find("wrote ")));
        for (std::string part; std::getline(parts, part, '\r'); shown += !part.empty())
            EXPECT_LT(part.size(), std::max<std::size_t>(2, columns))
                << "a line that wraps is never taken back: " << part;
        EXPECT_GT(shown, 5u) << text;
    }
}

TEST_F(Surroundings, WithoutProcAllIsMeasured) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "ASan reads /proc";
#endif
    if (!can_be_apart()) GTEST_SKIP() << "no name spaces here";
    // The loader asks /proc where the program lies, which its libraries' folder is named by.
    std::ifstream maps("/proc/self/maps");
    std::string libraries;
    for (std::string line; std::getline(maps, line);)
        if (const std::size_t path = line.find('/');
            path != std::string::npos && line.find("libdnnl") != std::string::npos)
            libraries = fs::path(line.substr(path)).parent_path();
    const Outcome outcome = apart("mount -t tmpfs none /proc\nexport LD_LIBRARY_PATH=" + libraries,
                                  program() + sweep() + " --ceilings none --verbose");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("largest batch fwd"));
}

TEST_F(Surroundings, AFolderThatCannotBeWrittenIsRefusedInOneLine) {
    if (!can_be_apart()) GTEST_SKIP() << "no name spaces here";
    const std::string folder = (directory_ / "read-only").string();
    fs::create_directories(folder);
    const std::string read_only = "mount --bind " + folder + " " + folder + " && mount -o remount,ro,bind " + folder +
                                  " && cd " + folder + "\nexport KBENCH_CACHE_DIR=" + folder + "/cache";
    const std::string tiny = " --config " + tiny_config() + " --backend cpu --quick --ceilings none";
    const Outcome refused = apart(read_only, KBENCH_BINARY + tiny);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, testing::MatchesRegex("kbench: --out kbench-runs/[^\n]*: Read-only file system\n"));
    const Outcome elsewhere = apart(read_only, KBENCH_BINARY + tiny + " --out " + out());
    EXPECT_EQ(elsewhere.exit_code, 0) << "only its cache cannot be written: " << elsewhere.err;
}

TEST_F(Surroundings, AGpuThatCannotBeUsedIsNotReplacedByTheCpu) {
    if (cuda_unavailable().empty()) GTEST_SKIP() << "the GPU here can be used";
    if (!fs::exists("/sys/bus/pci/devices")) GTEST_SKIP() << "no PCI bus here";
    if (!can_be_apart()) GTEST_SKIP() << "no name spaces here";
    directory_.write("pci/0000:65:00.0/vendor", "0x10de\n");
    directory_.write("pci/0000:65:00.0/class", "0x030200\n");
    const std::string with_gpu =
        "mount --bind " + (directory_ / "pci").string() +
        " /sys/bus/pci/devices\nunset CUDA_VISIBLE_DEVICES\nexport KBENCH_CACHE_DIR=" + (directory_ / "cache").string();
    const std::string quick = " --quick --counters none --seq 4 --out ", config = tiny();
    for (const std::string& command :
         {" run --config " + config + quick + out(),
          std::string(" train --config ") + tiny_config() + " --batch 1 --seq 4 --steps 1", std::string(" ceilings")}) {
        const Outcome refused = apart(with_gpu, KBENCH_BINARY + command);
        EXPECT_EQ(refused.exit_code, 3) << command;
        EXPECT_THAT(refused.err,
                    testing::MatchesRegex(
                        "kbench: no usable GPU: [^\n]*0000:65:00.0[^\n]*or measure the CPU with --backend cpu\n"));
        EXPECT_EQ(refused.out, "");
    }
    EXPECT_FALSE(fs::exists(out()));
    EXPECT_EQ(apart(with_gpu, KBENCH_BINARY " run --config " + tiny() + " --backend cpu" + quick + out()).exit_code, 0);
    const Outcome hidden = apart(with_gpu, "CUDA_VISIBLE_DEVICES= " KBENCH_BINARY " run --config " + tiny() + quick +
                                               (directory_ / "hidden").string());
    EXPECT_EQ(hidden.exit_code, 0) << hidden.err;
}

TEST_F(Surroundings, AReadOnlyCheckoutSaysThatItCannotBeBuiltIn) {
    if (!can_be_apart()) GTEST_SKIP() << "no name spaces here";
    const fs::path checkout = directory_ / "checkout", source = KBENCH_SOURCE_DIR;
    fs::create_directories(checkout / "scripts");
    for (const char* name : {"kbench", "scripts/common.sh", "scripts/setup"})
        fs::copy_file(source / name, checkout / name);
    const std::string folder = checkout.string();
    const std::string read_only = "mount --bind " + folder + " " + folder + " && mount -o remount,ro,bind " + folder;
    for (const char* name : {"/kbench --version", "/scripts/setup"}) {
        const Outcome outcome = apart(read_only, folder + name);
        EXPECT_EQ(outcome.exit_code, 3) << name;
        EXPECT_EQ(outcome.err,
                  "kbench: " + folder + " cannot be written, where kbench is built: use a copy of it that can\n");
    }
}

}  // namespace
}  // namespace kbench
