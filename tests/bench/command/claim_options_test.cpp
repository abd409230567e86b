// The command line of `kbench claim`.
#include "bench/command/claim_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::string refusal(std::vector<std::string> arguments) {
    return refusal_of([&] { parse_claim(arguments); });
}

TEST(ClaimOptions, ATimeHasItsUnit) {
    const auto seconds = [](const std::string& text) {
        return parse_claim({"--model", "gpt2", "--machine", "l4", "--latency", text}).request.latency_s;
    };
    EXPECT_DOUBLE_EQ(seconds("31ms"), 0.031);
    EXPECT_DOUBLE_EQ(seconds("2.1s"), 2.1);
    EXPECT_DOUBLE_EQ(seconds("450us"), 450e-6);
    for (const char* text : {"", "31", "ms", "-1ms", "0s", "nans", "1e999s", "1 ms", "1min"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--machine", "l4", "--latency", text}), HasSubstr("with its unit"));
}

TEST(ClaimOptions, AClaimIsAboutOneModelAtOnePointOfOneMachine) {
    EXPECT_THAT(refusal({"--machine", "l4", "--latency", "1ms"}), HasSubstr("--model is missing"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--latency", "1ms"}), HasSubstr("--machine is missing"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--machine", "l4"}), HasSubstr("--latency is missing"));
    for (const char* text : {"1,2", "max"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--batch", text}), HasSubstr("a claim is about one value"));
    const ClaimRequest request = parse_claim({"--model", "gpt2", "--machine", "l4", "--latency", "1ms", "--seq", "128",
                                              "--batch", "4", "--attention", "unfused"})
                                     .request;
    EXPECT_EQ(request.at.count("seq"), 128);
    EXPECT_EQ(request.at.count("batch"), 4);
    EXPECT_EQ(request.at.word("attention"), "unfused");
}

TEST(ClaimOptions, TheReferenceInDocsIsTheTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/claim.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(claim_options_markdown())) << "the table in docs/claim.md must be:\n"
                                                                 << claim_options_markdown();
}

}  // namespace
}  // namespace kbench
