// Token files: what is accepted, and that nothing is dropped, repeated or wrapped in silence.
#include "bench/plan/data/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/plan/data/npy.h"
#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Tokens : public testing::Test {
  protected:
    std::filesystem::path array(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
        write_npy(directory_ / "t.npy", shape, DataType::int32, values.data(), shape.back());
        return directory_ / "t.npy";
    }
    std::filesystem::path text(const std::string& content) { return directory_.write("t.txt", content); }
    static std::string refusal(const std::filesystem::path& path, std::int64_t batch = 2, std::int64_t seq = 2) {
        const std::string line = error_line<UsageError>([&] { read_tokens(path, batch, seq, 10); });
        EXPECT_THAT(line, HasSubstr(path.string()));
        return line;
    }

    TemporaryDirectory directory_;
};

TEST_F(Tokens, TextMayUseSpacesLinesAndCommas) {
    EXPECT_THAT(read_tokens(text("1, 2\n\t9,0\r\n"), 2, 2, 10), ElementsAre(1, 2, 9, 0));
}

TEST_F(Tokens, ArraysMayHaveOneOrTwoDimensions) {
    EXPECT_THAT(read_tokens(array({2, 2}, {1, 2, 3, 4}), 2, 2, 10), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(read_tokens(array({4}, {1, 2, 3, 4}), 2, 2, 10), ElementsAre(1, 2, 3, 4));
}

TEST_F(Tokens, OneRowServesTheWholeBatch) {
    EXPECT_THAT(read_tokens(text("5 6"), 3, 2, 10), ElementsAre(5, 6, 5, 6, 5, 6));
    EXPECT_THAT(read_tokens(array({1, 2}, {5, 6}), 2, 2, 10), ElementsAre(5, 6, 5, 6));
}

TEST_F(Tokens, AnotherCountIsRefusedWithTheRightOne) {
    EXPECT_THAT(refusal(text("1 2 3")), HasSubstr("3 tokens; batch 2 and sequence length 2 need 4, or 2"));
    EXPECT_THAT(refusal(text("1 2 3 4 5")), HasSubstr("5 tokens"));
    EXPECT_THAT(refusal(text("")), HasSubstr("0 tokens"));
}

TEST_F(Tokens, RowsOfAnotherLengthAreRefused) {
    EXPECT_THAT(refusal(array({4, 1}, {1, 2, 3, 4})), HasSubstr("rows of 1 tokens; --seq 2"));
    EXPECT_THAT(refusal(array({1, 2, 2}, {1, 2, 3, 4})), HasSubstr("3 dimensions"));
}

TEST_F(Tokens, AnArrayInAnotherOrderIsRefusedWithBothShapes) {
    const std::string line = refusal(array({3, 2}, {1, 2, 3, 4, 5, 6}), 2, 3);
    EXPECT_THAT(line, HasSubstr("has shape (3, 2)"));
    EXPECT_THAT(line, HasSubstr("tokens need (2, 3): numpy.transpose(x, (1, 0)) is that"));
    EXPECT_THAT(refusal(array({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), 2, 2), HasSubstr("axis 0 is 4 where 2 is wanted"));
    EXPECT_THAT(refusal(array({1, 3}, {1, 2, 3}), 3, 1), HasSubstr("tokens need (3, 1)"));
}

TEST_F(Tokens, NumbersOfRowsStandInAColumn) {
    const auto read = [](const std::filesystem::path& path) { return read_numbers_of_rows(path, 3, 10, "lengths"); };
    EXPECT_THAT(read(array({3}, {1, 2, 3})), ElementsAre(1, 2, 3));
    EXPECT_THAT(read(array({3, 1}, {1, 2, 3})), ElementsAre(1, 2, 3));
    EXPECT_THAT(read(array({1, 1}, {7})), ElementsAre(7, 7, 7));
    const std::string line = error_line<UsageError>([&] { read(array({1, 3}, {1, 2, 3})); });
    EXPECT_THAT(line, HasSubstr("has shape (1, 3), but lengths needs (3, 1)"));
}

TEST_F(Tokens, OutsideTheVocabularyIsRefusedWithPositionAndValue) {
    EXPECT_THAT(refusal(text("1 2 10 3")), HasSubstr("token 2 is 10; it should be in [0, 10)"));
    EXPECT_THAT(refusal(text("1 -1 2 3")), HasSubstr("token 1 is -1"));
    // 2^32 + 1 would be 1 if it were narrowed first.
    EXPECT_THAT(refusal(text("4294967297 1 2 3")), HasSubstr("token 0 is 4294967297"));
}

TEST_F(Tokens, NotAnIntegerIsRefusedWithPositionAndText) {
    EXPECT_THAT(refusal(text("1 2.5 3 4")), HasSubstr("token 1 is '2.5'"));
    EXPECT_THAT(refusal(text("1 2 3 99999999999999999999")), HasSubstr("token 3 is '99999999999999999999'"));
}

TEST_F(Tokens, UnreadableIsRefused) {
    refusal(directory_ / "missing.txt");
    refusal(directory_ / "");
}

}  // namespace
}  // namespace kbench
