// The command line of `kbench merge`, and its page in docs/.
#include "bench/command/merge_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/merge.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string table = markdown_of(merge_options());
    EXPECT_THAT(text.str(), HasSubstr(table)) << "the table in docs/merge.md must be:\n" << table;
}

}  // namespace
}  // namespace kbench
