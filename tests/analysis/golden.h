// Golden files: what a writer gave when a person last looked at it. Run the tests with KBENCH_UPDATE_GOLDEN=1 to
// replace them after a change that was meant, and read the difference.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace kbench {

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << "cannot read " << path;
    return (std::ostringstream() << file.rdbuf()).str();
}

/// `folder` is one of tests/, and its golden/ holds the file.
inline void expect_golden(const std::string& file_name, const std::string& text,
                          const std::string& folder = "analysis") {
    const std::filesystem::path path =
        std::filesystem::path(KBENCH_SOURCE_DIR) / "tests" / folder / "golden" / file_name;
    if (std::getenv("KBENCH_UPDATE_GOLDEN")) {
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    EXPECT_EQ(read_file(path), text) << "differs from " << path << "; KBENCH_UPDATE_GOLDEN=1 replaces it";
}

/// A directory of its own for each test, removed afterwards.
class ScratchDirectory {
  public:
    ScratchDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "kbench-test-XXXXXX").string();
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        path_ = name;
    }
    ~ScratchDirectory() { std::filesystem::remove_all(path_); }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace kbench
