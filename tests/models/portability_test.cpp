// What one of the supported compilers or libraries refuses, though the one that builds most often takes it. Each was
// found by `scripts/compilers` or on a GPU machine, and came back with a later feature.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Refused {
    std::string_view what;
    std::string_view under;  ///< the folder of which it is refused
    std::regex pattern;
    std::string_view why;
};

/// `[\s\S]*?` stands for anything up to the first match: std::regex's dot stops at the end of a line.
const std::vector<Refused>& refused() {
    static const std::vector<Refused> rows{
        {"an array of a class template without its bound", "models/",
         std::regex(R"(\ntemplate <[^\n]*>\nstruct [^\n]*\{\n([^}\n][^\n]*\n|\n)*?    static constexpr [^\n]*\[\] = )"),
         "GCC 13 takes it for an array of unknown bound in a concept"},
        {"an argument of a format by name", "", std::regex(R"(fmt::arg\()"),
         "fmt 11.1 refuses {} after {name} at run time"},
    };
    return rows;
}

std::vector<std::string> found_in(std::string_view path, const std::string& text) {
    std::vector<std::string> found;
    for (const Refused& row : refused())
        if (path.starts_with(row.under) && std::regex_search(text, row.pattern)) found.emplace_back(row.what);
    return found;
}

TEST(Portability, NoSourceHasWhatAnotherCompilerRefuses) {
    const fs::path root = KBENCH_SOURCE_DIR;
    int files = 0;
    for (const char* folder : {"models", "analysis", "kernels", "cpu", "profile", "bench", "include"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh" &&
                extension != ".in")
                continue;
            std::ifstream file(entry.path());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            const std::string path = entry.path().lexically_relative(root).string();
            for (const std::string& what : found_in(path, text)) ADD_FAILURE() << path << " has " << what;
            ++files;
        }
    EXPECT_GT(files, 200) << "the scan found almost nothing under " << root;
}

TEST(Portability, TheScanSeesWhatItLooksFor) {
    EXPECT_EQ(
        found_in("models/a.h",
                 "\ntemplate <int f>\nstruct Op {\n    int size;\n\n    static constexpr int kinds[] = {1, 2};\n"),
        std::vector<std::string>{"an array of a class template without its bound"});
    EXPECT_EQ(found_in("models/a.h", "fmt::format(\"{} {unit}\", 1, fmt::arg(\"unit\", 2))"),
              std::vector<std::string>{"an argument of a format by name"});
    EXPECT_TRUE(found_in("models/a.h", "\ntemplate <int f>\nstruct Op {\n    static constexpr int kinds[2] = {1, 2};\n")
                    .empty());
    EXPECT_TRUE(found_in("models/a.h", "\nstruct Op {\n    static constexpr int kinds[] = {1, 2};\n").empty());
    EXPECT_TRUE(
        found_in("models/a.h",
                 "\ntemplate <int f>\nstruct A {\n    int a;\n};\nstruct Op {\n    static constexpr int k[] = {1};\n")
            .empty());
}

}  // namespace
