// Models have no walls of their own: nothing outside a model's files and its rows in the registry names it, but help
// that shows how to ask for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::regex named(R"((gpt-?2|\bmlp|deep ?speech|llama(?!\.cpp)|mistral|qwen))", std::regex::icase);

/// Whether `line` of `path` may name a model.
bool may_name(const std::string& path, const std::string& line) {
    for (const char* family : {"models/gpt2", "models/llama", "models/mlp", "models/deepspeech2"})
        if (path.starts_with(family)) return true;
    if (path == "models/registry.cpp") return true;
    // Help is text of a command's options.
    const bool is_text = line.find('"') != std::string::npos && line.find("#include") == std::string::npos;
    if (path == "bench/main.cpp") return is_text;
    return path.starts_with("bench/command/") && path.find("options") != std::string::npos && is_text;
}

std::vector<std::string> lines_that_name_a_model(const std::string& path, const std::string& text) {
    std::vector<std::string> found;
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (std::regex_search(line, named) && !may_name(path, line))
            found.push_back(path + ":" + std::to_string(number) + ": " + line);
    }
    return found;
}

TEST(Naming, NoCodeNamesAModelButItsOwn) {
    const fs::path root = KBENCH_SOURCE_DIR;
    int files = 0;
    for (const char* folder : {"models", "analysis", "kernels", "cpu", "profile", "bench", "include"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh" &&
                extension != ".js" && extension != ".in")
                continue;
            std::ifstream file(entry.path());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            for (const std::string& line :
                 lines_that_name_a_model(entry.path().lexically_relative(root).string(), text))
                ADD_FAILURE() << line;
            ++files;
        }
    EXPECT_GT(files, 200) << "the scan found almost nothing under " << root;
}

TEST(Naming, TheSearchFindsWhatIsPlanted) {
    EXPECT_EQ(lines_that_name_a_model("bench/plan/plan.cpp", "int a;\n// as in GPT-2\n").size(), 1u);
    EXPECT_EQ(lines_that_name_a_model("kernels/x.cu", "if (model == \"gpt2-large\")").size(), 1u);
    EXPECT_EQ(lines_that_name_a_model("cpu/native/recurrent.cpp", "// Deep Speech 2's layers").size(), 1u);
    EXPECT_EQ(lines_that_name_a_model("bench/measure/sweep/run.cpp", "#include \"models/mlp.h\"").size(), 1u);
    EXPECT_EQ(lines_that_name_a_model("bench/command/options.cpp", "#include \"models/gpt2.h\"").size(), 1u);
    EXPECT_TRUE(lines_that_name_a_model("bench/command/options.cpp", "     \"such as gpt2-large\",").empty());
    EXPECT_TRUE(lines_that_name_a_model("models/gpt2_config.cpp", "// GPT-2").empty());
}

}  // namespace
