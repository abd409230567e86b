// The order of the folders: each includes only itself and those to its left, and what means something to no device
// includes no device's headers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Folder {
    std::string name;
    std::set<std::string> may_include;
    bool knows_devices;
};

const std::vector<Folder> folders{
    {"models", {"models"}, false},
    {"analysis", {"models", "analysis"}, false},
    {"kernels", {"models", "analysis", "kernels"}, true},
    {"cpu", {"models", "analysis", "cpu"}, true},
    {"bench", {"models", "analysis", "kernels", "cpu", "bench"}, true},
};

const std::regex device_header(
    R"((cuda|cublas|cupti|nvml|cudnn|cufft|curand|cusolver|cusparse|nvtx|nvperf|dnnl|cblas|openblas|mma\.h).*|)"
    R"((oneapi|cooperative_groups|cub|thrust|cute|cutlass)/.*)");

/// One line "path:line: ..." for each #include in `text`, the contents of `path`, that `folder` may not have.
/// `file_exists` tells whether a path relative to the including file's folder names a file.
std::vector<std::string> violations(const Folder& folder, const std::string& path, const std::string& text) {
    static const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::vector<std::string> found;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        const std::string header = match[1];
        const std::string where = path + ":" + std::to_string(number) + ": includes " + header;
        const std::string first = header.substr(0, header.find('/'));
        const bool is_ours = std::ranges::any_of(folders, [&](const Folder& f) { return f.name == first; });
        if (is_ours && header != first && !folder.may_include.contains(first))
            found.push_back(where + ", which is to the right of " + folder.name + "/");
        if (header.starts_with(".")) found.push_back(where + "; includes are written from the root of the repository");
        if (!folder.knows_devices && std::regex_match(header, device_header))
            found.push_back(where + ", a device's header, in " + folder.name + "/");
    }
    return found;
}

const Folder& folder(const std::string& name) { return *std::ranges::find(folders, name, &Folder::name); }

std::vector<std::string> in(const std::string& name, const std::string& text) {
    return violations(folder(name), name + "/x.cpp", text);
}

TEST(Layering, NoFolderIncludesOneToItsRight) {
    const std::set<std::string> extensions{".h", ".cuh", ".cpp", ".cu"};
    const std::filesystem::path root = KBENCH_SOURCE_DIR;
    int files = 0;
    for (const Folder& f : folders)
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / f.name)) {
            if (!entry.is_regular_file() || !extensions.contains(entry.path().extension().string())) continue;
            std::ifstream file(entry.path());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            for (const std::string& line : violations(f, entry.path().lexically_relative(root).string(), text))
                ADD_FAILURE() << line;
            ++files;
        }
    EXPECT_GT(files, 10) << "the scan found almost nothing under " << root;
}

TEST(LayeringScanner, ReportsEachStepToTheRightWithItsLine) {
    EXPECT_THAT(
        in("models", "#pragma once\n#include \"analysis/explain/ledger.h\"\n"),
        testing::ElementsAre("models/x.cpp:2: includes analysis/explain/ledger.h, which is to the right of models/"));
    EXPECT_EQ(
        in("analysis", "#include \"kernels/check.h\"\n#include \"cpu/blas.h\"\n#include \"bench/plan/plan.h\"").size(),
        3u);
    EXPECT_EQ(in("cpu", "#include \"bench/plan/plan.h\"").size(), 1u);
    EXPECT_EQ(in("kernels", "#include \"bench/plan/plan.h\"").size(), 1u);
}

TEST(LayeringScanner, ReportsKernelsAndCpuIncludingEachOther) {
    EXPECT_EQ(in("kernels", "#include \"cpu/native.h\"").size(), 1u);
    EXPECT_EQ(in("cpu", "#include \"kernels/native.h\"").size(), 1u);
}

TEST(LayeringScanner, ReportsDeviceHeadersInModelsAndAnalysis) {
    for (const char* header : {"cuda.h", "cuda_runtime.h", "cuda_fp16.h", "cublas_v2.h", "cublasLt.h", "cupti.h",
                               "cupti_range_profiler.h", "nvml.h", "cudnn.h", "dnnl.hpp", "oneapi/dnnl/dnnl.hpp",
                               "cblas.h", "cub/cub.cuh", "cooperative_groups/reduce.h"})
        for (const char* name : {"models", "analysis"})
            EXPECT_EQ(in(name, "#include <" + std::string(header) + ">").size(), 1u) << name << " " << header;
    EXPECT_TRUE(in("kernels", "#include <cuda_runtime.h>").empty());
    EXPECT_TRUE(in("cpu", "#include <dnnl.hpp>").empty());
}

TEST(LayeringScanner, SeesIncludesHoweverTheyAreSpaced) {
    EXPECT_EQ(in("models", "  #  include\t\"bench/plan/plan.h\"  // why not\r\n").size(), 1u);
    EXPECT_EQ(in("models", "#include<cuda_runtime.h>").size(), 1u);
    EXPECT_EQ(in("models", "#include \"../bench/plan/plan.h\"").size(), 1u);
}

TEST(LayeringScanner, AcceptsWhatIsAllowed) {
    EXPECT_TRUE(in("models", "#include \"kbench/op.h\"\n#include <vector>\n#include <fmt/format.h>\n").empty());
    EXPECT_TRUE(in("bench", "#include \"kbench/op.h\"\n#include \"kernels/check.h\"\n#include \"cpu/blas.h\"").empty());
    EXPECT_TRUE(in("models", "// #include \"bench/plan/plan.h\" would be wrong\n").empty());
}

}  // namespace
