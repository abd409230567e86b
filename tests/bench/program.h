// The built program, as a user calls it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/bench/temporary_directory.h"

namespace kbench {

struct Outcome {
    int exit_code;
    std::string out, err;
};

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Counts lines of stderr. A slow machine prints progress every ten seconds before a refusal.
inline std::ptrdiff_t lines_but_progress(const std::string& err) {
    std::istringstream stream(err);
    std::ptrdiff_t lines = 0;
    for (std::string line; std::getline(stream, line);) lines += line.ends_with(" s so far") ? 0 : 1;
    return lines;
}

class Program : public testing::Test {
  protected:
    Outcome shell(const std::string& command) {
        const std::string out = (directory_ / "out").string(), err = (directory_ / "err").string();
        const int status = std::system((command + " >" + out + " 2>" + err).c_str());
        return {WEXITSTATUS(status), read_text(out), read_text(err)};
    }
    Outcome kbench(const std::string& arguments) {
        return shell("KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " KBENCH_BINARY " " + arguments);
    }
    void expect_refusal(const std::string& arguments, const std::string& substring, int exit_code = 2) {
        const Outcome outcome = kbench(arguments);
        EXPECT_EQ(outcome.exit_code, exit_code) << arguments;
        EXPECT_THAT(outcome.err, testing::HasSubstr(substring)) << arguments;
        EXPECT_EQ(lines_but_progress(outcome.err), 1) << "one line: " << outcome.err;
        EXPECT_EQ(outcome.out, "") << arguments;
    }
    std::string config(const std::string& text) { return directory_.write("config.json", text).string(); }
    /// A small model; without ceilings, which would be measured for each test.
    std::string tiny() { return tiny_config() + " --ceilings none"; }
    std::string tiny_config() {
        return config(R"({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32})");
    }

    TemporaryDirectory directory_;
};

}  // namespace kbench
