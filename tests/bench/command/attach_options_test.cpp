// The command line of `kbench attach`, and its page in docs/.
#include "bench/command/attach/attach_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AttachOptions, WhatStandsBehindDashesIsTheProgram) {
    const AttachRequest request =
        parse_attach({"--out", "o", "--counters", "none", "--", "sh", "a.sh", "--", "--out"}).request;
    EXPECT_EQ(request.out, "o");
    EXPECT_TRUE(request.counters.nothing());
    EXPECT_THAT(request.command, ElementsAre("sh", "a.sh", "--", "--out"));
    EXPECT_THAT(parse_attach({"--", "sh"}).request.counters.sets, ElementsAre("core"));
}

TEST(AttachOptions, RefusesWhatItCannotDo) {
    EXPECT_THAT(refusal_of([] { parse_attach({}); }), HasSubstr("no program"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--"}); }), HasSubstr("no program"));
    EXPECT_THAT(refusal_of([] { parse_attach({"python3", "a.py"}); }), HasSubstr("python3"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--counters", "core,samples", "--", "sh"}); }), HasSubstr("samples"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--format", "html", "--", "sh"}); }), HasSubstr("text, json"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--iterations", "5", "--", "sh"}); }), HasSubstr("must be A:B"));
    EXPECT_THAT(refusal_of([] {
                    parse_attach({"--from", "step", "--no-names", "--", "sh"});
                }),
                HasSubstr("--no-names"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--", "no-such-program"}); }), HasSubstr("no program 'no-such-program'"));
}

TEST(AttachOptions, WarmupIsWhatIterationsBeginWith) {
    EXPECT_EQ(parse_attach({"--warmup", "3", "--", "sh"}).request.iterations, "3:");
    EXPECT_EQ(parse_attach({"--", "sh"}).request.iterations, "");
    EXPECT_THAT(refusal_of([] {
                    parse_attach({"--warmup", "3", "--iterations", "5:", "--", "sh"});
                }),
                HasSubstr("--iterations says which"));
    EXPECT_THAT(refusal_of([] { parse_attach({"--warmup", "-1", "--", "sh"}); }), HasSubstr("a number of at least 0"));
}

TEST(AttachOptions, TheReferenceInDocsIsTheTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/attach.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(attach_options_markdown())) << "the table in docs/attach.md must be:\n"
                                                                  << attach_options_markdown();
}

}  // namespace
}  // namespace kbench
