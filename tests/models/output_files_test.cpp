// Whatever the product writes goes through one class, models/base/write_file.*: it follows no link, waits for no
// pipe and leaves a file whole or as it was. The few places that write, rename or remove otherwise stand here with a
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// What a line of `path` may say though others may not.
struct Exception {
    std::string path, text, why;
};

const std::vector<Exception> exceptions{
    {"models/base/write_file.cpp", "", "the class itself"},
    {"bench/measure/store/folder_lock.cpp", "O_RDWR | O_CREAT | O_NOFOLLOW",
     "a lock's file, to which nothing is written"},
    {"bench/device/console.cpp", "open(\"/dev/null\"", "a standard stream that the caller closed"},
    {"bench/device/nvidia.cpp", "open(node.c_str(), O_RDWR",
     "a GPU's node, as the driver opens it, to know whether it may"},
    {"profile/attach/record_file.cpp", "std::fopen(", "a folder that kbench attach has just made"},
    {"profile/embedded/recording.cpp", "open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL",
     "a user's program loads it, and nothing of models/"},
    {"profile/embedded/recording.cpp", "std::rename(temporary.c_str()", "the file that it made"},
    {"profile/embedded/recording.cpp", "unlink(temporary.c_str())", "the file that it made"},
    {"bench/command/repeated/child.cpp", "\"/dev/null\", O_WRONLY", "a child's standard output"},
    {"bench/command/repeated/child.cpp", "filesystem::remove(log)", "a file that this process made"},
    {"bench/command/repeated/child.cpp", "filesystem::remove(directory)", "a folder that this process made, if empty"},
    {"bench/command/repeated/child.cpp", "fs::remove(path, ignored)", "kbench's own names in a folder that it made"},
    {"bench/command/repeated/ab_sides.cpp", "fs::remove(log)", "a file that this process made"},
    {"bench/command/repeated/ab_sides.cpp", "fs::remove(kept)", "files that this process made"},
    {"bench/command/repeated/ab_sides.cpp", "fs::rename(log, output)", "a file that this process made, to a new name"},
    {"bench/command/repeated/noise.cpp", "mkdtemp(", "a folder that is new and no other user's"},
    {"bench/command/repeated/noise.cpp", "fs::remove_all(path, ignored)", "the folder that mkdtemp made"},
    {"bench/command/run.cpp", "fs::remove(whole)", "the result of the sweep that is resumed"},
    {"bench/measure/store/result_files.cpp", "fs::remove(directory /", "the other form of the result just written"},
};

const std::regex writes(R"(\b(w?of|w?f|basic_of|basic_f)stream\b|\bw?filebuf\b)"
                        R"(|\b(f|fd|fre)open\s*\(|\bcreat\s*\(|\bO_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b)"
                        R"(|\bmko?stemps?\s*\(|\bmkdtemp\s*\(|\bf?truncate\s*\(|\b(remove_all|resize_file)\s*\()"
                        R"(|\b(rename|renameat|renameat2|unlink|unlinkat|rmdir|symlink|link|linkat)\s*\()"
                        R"(|\b(fs|filesystem)::(remove|rename|copy|copy_file|create_\w*link)\s*\()");
/// One of these is in all that `writes` finds; regular expressions alone would take 10 s.
constexpr std::string_view hints[] = {"stream", "filebuf", "open",   "creat", "O_",    "mk",  "truncate",
                                      "remove", "resize",  "rename", "link",  "rmdir", "copy"};
const std::regex include(R"(^\s*#\s*include\b)");

/// One line "path:line: ..." for each in `text`, the contents of `path`, that writes and is no exception; the
/// exceptions that there are go into `met`.
std::vector<std::string> lines_that_write(const std::string& path, const std::string& text,
                                          std::set<std::string>& met) {
    std::vector<std::string> found;
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        // A comment begins behind a space, unlike what stands in "://".
        const std::size_t comment = line.starts_with("//") ? 0 : line.find(" //");
        const std::string code = line.substr(0, comment);
        const bool may_write =
            std::ranges::any_of(hints, [&](std::string_view hint) { return code.find(hint) != std::string::npos; });
        if (!may_write || !std::regex_search(code, writes) || std::regex_search(code, include)) continue;
        const auto exception = std::ranges::find_if(
            exceptions, [&](const Exception& e) { return e.path == path && code.find(e.text) != std::string::npos; });
        if (exception == exceptions.end())
            found.push_back(path + ":" + std::to_string(number) + ": " + line);
        else
            met.insert(exception->path + ": " + exception->text);
    }
    return found;
}

std::vector<std::string> lines_that_write(const std::string& path, const std::string& text) {
    std::set<std::string> met;
    return lines_that_write(path, text, met);
}

TEST(OutputFiles, AreWrittenByOneClass) {
    const fs::path root = KBENCH_SOURCE_DIR;
    const std::set<std::string> sources{".h", ".cuh", ".cpp", ".cu", ".in"};
    std::set<std::string> met;
    int files = 0;
    for (const char* folder : {"models", "analysis", "kernels", "cpu", "profile", "bench", "include"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            if (!sources.contains(entry.path().extension().string())) continue;
            std::ifstream file(entry.path());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            for (const std::string& line : lines_that_write(entry.path().lexically_relative(root).string(), text, met))
                ADD_FAILURE() << line << "\nwrite_file.h has what writes a file, makes a new one or a new folder";
            ++files;
        }
    EXPECT_GT(files, 200) << "the scan found almost nothing under " << root;
    EXPECT_EQ(met.size(), exceptions.size()) << "an exception that nothing needs: " << testing::PrintToString(met);
}

TEST(OutputFiles, TheScanFindsWhatIsPlanted) {
    for (const char* line : {"std::ofstream file(path);",
                             "    std::ofstream(path) << text;",
                             "std::wofstream file;",
                             "std::fstream f(p);",
                             "std::basic_ofstream<char> file;",
                             "std::filebuf buffer;",
                             "FILE* f = fopen(name, \"w\");",
                             "std::freopen (name, \"a\", stderr);",
                             "open(path.c_str(), O_WRONLY)",
                             "open(path, O_RDWR | O_CLOEXEC)",
                             "posix_spawn_file_actions_addopen(a, 2, log, O_CREAT | O_TRUNC, 0644);",
                             "creat(name, 0644);",
                             "mkstemp(name.data());",
                             "mkdtemp(name.data())",
                             "std::rename(from, to)",
                             "fs::rename(a, b);",
                             "std::filesystem::remove_all(path);",
                             "remove_all(path);",
                             "fs::remove(path);",
                             "unlink(path.c_str());",
                             "std::filesystem::copy_file(a, b);",
                             "fs::copy(a, b);",
                             "fs::create_symlink(a, b);",
                             "truncate(path, 0);",
                             "fs::resize_file(path, 0);",
                             "open(\"http://x\", O_APPEND);  // why not"})
        EXPECT_EQ(lines_that_write("bench/measure/point/x.cpp", line).size(), 1u) << line;
    EXPECT_THAT(lines_that_write("cpu/x.cpp", "int a;\n\nstd::ofstream file;\n"),
                testing::ElementsAre("cpu/x.cpp:3: std::ofstream file;"));
}

TEST(OutputFiles, TheScanLetsReadersAndExceptionsBe) {
    for (const char* line :
         {"#include <fstream>", "std::ifstream file(path);", "open(path.c_str(), O_RDONLY | O_CLOEXEC)",
          "write_file_atomically(path, text);", "// std::ofstream would follow links", "f();  // no fopen( here",
          "std::ostream& out", "rename_counters(result);", "std::copy(a, b, c);", "pattern.remove_suffix(1);",
          "link_targets(of, n);"})
        EXPECT_TRUE(lines_that_write("bench/measure/point/x.cpp", line).empty()) << line;
    const std::string removed = "        fs::remove_all(path, ignored);";
    EXPECT_TRUE(lines_that_write("bench/command/repeated/noise.cpp", removed).empty());
    EXPECT_EQ(lines_that_write("bench/command/repeated/child.cpp", removed).size(), 1u) << "of one file alone";
}

}  // namespace
