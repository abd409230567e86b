// The file of measured GEMM algorithms. No test here needs a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "kernels/gemm/cublaslt.h"

namespace kbench::test {
namespace {

using cuda::AlgorithmCache;
using cuda::GemmAlgorithm;
using cuda::GemmProblem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GemmAlgorithm algorithm(std::uint64_t seed) {
    GemmAlgorithm made{};
    for (std::size_t i = 0; i < std::size(made.algorithm.data); ++i)
        made.algorithm.data[i] = 0x9e3779b97f4a7c15u * (seed + i);  // all 64 bits in use
    made.workspace_bytes = std::size_t{5} << 32;
    made.median_us = 17.25;
    made.candidates = 23;
    return made;
}

class AlgorithmCacheFile : public ::testing::Test {
  protected:
    AlgorithmCacheFile()
        : folder_(std::filesystem::temp_directory_path() / ("kbench_cache_test_" + std::to_string(getpid()))) {
        std::filesystem::remove_all(folder_);
    }
    ~AlgorithmCacheFile() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path file() const { return folder_ / "some" / "algorithms.json"; }
    void write(const std::string& text) const {
        std::filesystem::create_directories(file().parent_path());
        std::ofstream(file()) << text;
    }
    std::string read() const {
        std::ifstream stream(file());
        return {std::istreambuf_iterator<char>(stream), {}};
    }

  private:
    std::filesystem::path folder_;
};

TEST_F(AlgorithmCacheFile, KeepsEveryBitForTheNextProcess) {
    const GemmAlgorithm stored = algorithm(1);
    AlgorithmCache(file(), false).store("key", stored);
    const AlgorithmCache next(file(), false);
    const GemmAlgorithm* found = next.find("key");
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(std::equal(std::begin(stored.algorithm.data), std::end(stored.algorithm.data),
                           std::begin(found->algorithm.data)));
    EXPECT_EQ(found->workspace_bytes, stored.workspace_bytes);
    EXPECT_EQ(found->median_us, stored.median_us);
    EXPECT_EQ(found->candidates, stored.candidates);
    EXPECT_TRUE(found->from_cache);
    EXPECT_EQ(next.find("other key"), nullptr);
    EXPECT_THAT(next.warnings(), IsEmpty());
}

TEST_F(AlgorithmCacheFile, WhatThisProcessMeasuredIsNotFromTheFile) {
    AlgorithmCache cache(file(), false);
    cache.store("key", algorithm(1));
    ASSERT_NE(cache.find("key"), nullptr);
    EXPECT_FALSE(cache.find("key")->from_cache);
}

TEST_F(AlgorithmCacheFile, AMissingFileIsNoWarning) {
    const AlgorithmCache cache(file(), false);
    EXPECT_EQ(cache.find("key"), nullptr);
    EXPECT_THAT(cache.warnings(), IsEmpty());
}

TEST_F(AlgorithmCacheFile, TwoProcessesKeepEachOthersEntries) {
    AlgorithmCache one(file(), false), two(file(), false);
    one.store("a", algorithm(1));
    two.store("b", algorithm(2));
    one.store("c", algorithm(3));
    const AlgorithmCache next(file(), false);
    for (const char* key : {"a", "b", "c"}) EXPECT_NE(next.find(key), nullptr) << key;
}

TEST_F(AlgorithmCacheFile, TheLatestMeasurementWins) {
    AlgorithmCache one(file(), false), two(file(), false);
    one.store("key", algorithm(1));
    two.store("key", algorithm(2));
    EXPECT_EQ(AlgorithmCache(file(), false).find("key")->algorithm.data[0], algorithm(2).algorithm.data[0]);
    EXPECT_EQ(one.find("key")->algorithm.data[0], algorithm(1).algorithm.data[0]);
}

TEST_F(AlgorithmCacheFile, RetuneForgetsOnlyWhatIsMeasuredAgain) {
    {
        AlgorithmCache cache(file(), false);
        cache.store("asked for", algorithm(1));
        cache.store("not asked for", algorithm(2));
    }
    {
        AlgorithmCache cache(file(), true);
        EXPECT_EQ(cache.find("asked for"), nullptr);
        cache.store("asked for", algorithm(3));
        ASSERT_NE(cache.find("asked for"), nullptr);
    }
    const AlgorithmCache next(file(), false);
    EXPECT_EQ(next.find("asked for")->algorithm.data[0], algorithm(3).algorithm.data[0]);
    EXPECT_NE(next.find("not asked for"), nullptr);
}

TEST_F(AlgorithmCacheFile, ABrokenFileIsOneWarningAndIsReplaced) {
    AlgorithmCache(file(), false).store("old", algorithm(1));
    const std::string good = read();
    const auto replaced = [&](const std::string& what, const std::string& by) {
        std::string text = good;
        const auto at = text.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        return text.replace(at, what.size(), by);
    };
    const std::string word = good.substr(good.find('[') + 1, good.find(',', good.find('[')) - good.find('['));
    const std::string broken[] = {"",
                                  "not JSON",
                                  good.substr(0, good.size() / 2),
                                  "[]",
                                  "{}",
                                  R"({"format": 1})",
                                  R"({"format": 1, "entries": {"old": {}}})",
                                  replaced("\"format\": 1", "\"format\": 2"),
                                  replaced("\"format\": 1", "\"format\": \"1\""),
                                  replaced(word, ""),
                                  replaced(word, "\"xyz\","),
                                  replaced(word, "\"12 \","),
                                  replaced(word, "17,"),
                                  replaced("\"median_us\": 17.25", "\"median_us\": null")};
    for (const std::string& text : broken) {
        SCOPED_TRACE(text);
        write(text);
        AlgorithmCache cache(file(), false);
        EXPECT_EQ(cache.find("old"), nullptr);
        cache.store("new", algorithm(2));
        cache.store("newer", algorithm(3));
        ASSERT_EQ(cache.warnings().size(), 1u);
        EXPECT_THAT(cache.warnings()[0], HasSubstr(file().string()));
        EXPECT_EQ(cache.warnings()[0].find('\n'), std::string::npos);
        const AlgorithmCache next(file(), false);
        EXPECT_NE(next.find("new"), nullptr);
        EXPECT_THAT(next.warnings(), IsEmpty());
    }
}

TEST_F(AlgorithmCacheFile, AFolderThatCannotBeWrittenIsOneWarning) {
    write("a file where a folder should be");
    AlgorithmCache cache(file() / "algorithms.json", false);
    cache.store("a", algorithm(1));
    cache.store("b", algorithm(2));
    EXPECT_THAT(cache.warnings(), ElementsAre(HasSubstr("cannot write ")));
    EXPECT_NE(cache.find("a"), nullptr);
}

TEST_F(AlgorithmCacheFile, LeavesNoTemporaryFiles) {
    AlgorithmCache cache(file(), false);
    for (int i = 0; i < 3; ++i) cache.store("key", algorithm(1));
    const std::filesystem::directory_iterator files(file().parent_path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(AlgorithmKey, TellsEveryFieldOfAProblemApart) {
    const GemmProblem base{.precision = Precision::fp16,
                           .m = 2,
                           .n = 3,
                           .k = 5,
                           .out_type = DataType::fp16,
                           .ld_x = 7,
                           .ld_w = 11,
                           .ld_out = 13};
    const std::function<void(GemmProblem&)> changes[] = {
        [](auto& p) { p.precision = Precision::bf16; },
        [](auto& p) { p.m = 17; },
        [](auto& p) { p.n = 17; },
        [](auto& p) { p.k = 17; },
        [](auto& p) { p.x_transposed = true; },
        [](auto& p) { p.weight_transposed = true; },
        [](auto& p) { p.bias = true; },
        [](auto& p) { p.gelu = true; },
        [](auto& p) { p.keeps_argument = true; },
        [](auto& p) { p.gelu_gradient = true; },
        [](auto& p) { p.bias_gradient = true; },
        [](auto& p) { p.out_type = DataType::fp32; },
        [](auto& p) { p.ld_x = 17; },
        [](auto& p) { p.ld_w = 17; },
        [](auto& p) { p.ld_out = 17; },
        [](auto& p) { p.batch = 17; },
        [](auto& p) { p.stride_x = 17; },
        [](auto& p) { p.stride_w = 17; },
        [](auto& p) { p.stride_out = 17; },
    };
    std::set<std::string> keys{cuda::algorithm_key(base, "GPU", 1), cuda::algorithm_key(base, "other GPU", 1),
                               cuda::algorithm_key(base, "GPU", 2), cuda::algorithm_key(base, "GPU", 1, 104),
                               cuda::algorithm_key(base, "GPU", 1, 112)};
    for (const auto& change : changes) {
        GemmProblem changed = base;
        change(changed);
        keys.insert(cuda::algorithm_key(changed, "GPU", 1));
    }
    EXPECT_EQ(keys.size(), 5 + std::size(changes));
}

}  // namespace
}  // namespace kbench::test
