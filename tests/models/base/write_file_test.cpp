// A file that is written is whole, or as it was.
#include "models/base/write_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "kbench/error.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::EndsWith;

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNothingElse) {
    const ScratchDirectory directory;
    write_file_atomically(directory / "result.json", "old");
    write_file_atomically(directory / "result.json", "new");
    EXPECT_EQ(read_file(directory / "result.json"), "new");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(WriteFileAtomically, SaysWhichFileAndWhy) {
    const ScratchDirectory directory;
    const auto error_for = [&](const std::string& name) -> std::string {
        try {
            write_file_atomically(directory / name, "text");
        } catch (const UsageError& error) {
            return error.what();
        }
        return "written";
    };
    EXPECT_EQ(error_for("missing/result.json"),
              fmt::format("cannot write {}/missing/result.json: No such file or directory", directory.path().string()));
    std::filesystem::create_directory(directory / "folder");
    EXPECT_THAT(error_for("folder"), EndsWith("/folder: it is a directory"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1)
        << "a temporary file is left";
}

TEST(WriteFileAtomically, SaysThatAFolderIsNotWritable) {
    if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
    const ScratchDirectory directory;
    std::filesystem::permissions(directory.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    EXPECT_THAT([&] { write_file_atomically(directory / "result.json", "text"); },
                testing::ThrowsMessage<UsageError>(EndsWith("/result.json: Permission denied")));
}

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheNewOneDoesNotFit) {
    const ScratchDirectory directory;
    write_file_atomically(directory / "result.json", "old");
    const pid_t child = fork();  // the limit cannot be lifted again, so it is set in a process of its own
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit small{4096, 4096};
        setrlimit(RLIMIT_FSIZE, &small);
        try {
            write_file_atomically(directory / "result.json", std::string(8192, 'x'));
        } catch (const UsageError&) {
            _exit(7);
        }
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_EQ(read_file(directory / "result.json"), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1)
        << "a temporary file is left";
}

TEST(WriteFileAtomically, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
    const ScratchDirectory directory;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);  // nobody has its id now
    const std::string dead = fmt::format(".{}.0.tmp", child), alive = fmt::format(".{}.0.tmp", getpid());
    const std::vector<std::string> kept{".result.json" + alive, "result.json" + dead, ".result.json.tmp", ".x.0.0.tmp",
                                        ".x.12345678901.0.tmp", ".x.y.0.tmp",         "notes.txt"};
    for (const std::string& name : kept) std::ofstream(directory / name) << name;
    std::ofstream(directory / (".result.json" + dead)) << "{";
    std::ofstream(directory / (".seq8-batch1-fp32.json" + dead)) << "{";
    std::filesystem::create_directory(directory / (".folder" + dead));
    remove_abandoned_files(directory.path());
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
        if (entry.is_regular_file()) left.push_back(entry.path().filename().string());
    EXPECT_THAT(left, testing::UnorderedElementsAreArray(kept));
    EXPECT_TRUE(std::filesystem::exists(directory / (".folder" + dead)));
    remove_abandoned_files(directory / "none");  // and says nothing
}

}  // namespace
}  // namespace kbench
