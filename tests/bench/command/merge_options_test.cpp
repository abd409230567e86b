// The command line of `kbench merge`, and its page in docs/.
#include "bench/command/merge_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MergeOptions, TakesADirectoryAndResults) {
    const MergeRequest request = parse_merge({"--out", "all", "a", "b/result.json"}).request;
    EXPECT_EQ(request.out, "all");
    EXPECT_THAT(request.files, ElementsAre("a", "b/result.json"));
    EXPECT_THAT(refusal_of([] { parse_merge({"a"}); }), HasSubstr("--out is missing"));
    EXPECT_THAT(refusal_of([] { parse_merge({"--out", "all"}); }), HasSubstr("no RESULT"));
}

TEST(MergeOptions, TheReferenceInDocsIsTheTable) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/docs/merge.md";
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << merge_markdown();
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), merge_markdown()) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

}  // namespace
}  // namespace kbench
