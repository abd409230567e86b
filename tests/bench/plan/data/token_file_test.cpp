// Token files as people have them: every integer type of NumPy, raw numbers, llm.c's files, JSON, and pipes.
#include "bench/plan/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>

#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Number>
std::string raw_bytes(std::initializer_list<Number> numbers) {
    return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

std::string npy_of(const std::string& descr, const std::string& data, const std::string& shape = "(3,)") {
    const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return "\x93NUMPY\x01\0"s + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, const std::string& tokens) {
    return raw_bytes({magic, version, count}) + std::string(1024 - 12, '\0') + tokens;
}

class TokenFiles : public testing::Test {
  protected:
    IntegerArray read(const std::string& name, const std::string& content, const std::string& type = "",
                      RowLengths rows = RowLengths::of_one_length) const {
        return read_integers(directory_.write(name, content).string() + type, "token", rows);
    }
    std::string refusal(const std::string& name, const std::string& content, const std::string& type = "") const {
        const std::string line = error_line<UsageError>([&] { read(name, content, type); });
        EXPECT_THAT(line, HasSubstr(name));
        return line;
    }

    TemporaryDirectory directory_;
};

TEST_F(TokenFiles, EveryIntegerTypeOfNumPyIsRead) {
    const std::pair<std::string, std::string> files[] = {
        {"|u1", raw_bytes<std::uint8_t>({1, 2, 200})},  {"<u2", raw_bytes<std::uint16_t>({1, 2, 200})},
        {"<u4", raw_bytes<std::uint32_t>({1, 2, 200})}, {"<u8", raw_bytes<std::uint64_t>({1, 2, 200})},
        {"<i2", raw_bytes<std::int16_t>({1, 2, 200})},  {"<i4", raw_bytes<std::int32_t>({1, 2, 200})},
        {"<i8", raw_bytes<std::int64_t>({1, 2, 200})},  {">u2", "\0\1\0\2\0\xc8"s},
        {">i4", "\0\0\0\1\0\0\0\2\0\0\0\xc8"s},
    };
    for (const auto& [descr, data] : files)
        EXPECT_THAT(read("t.npy", npy_of(descr, data)).values, ElementsAre(1, 2, 200)) << descr;
    EXPECT_THAT(read("t.npy", npy_of("|i1", raw_bytes<std::int8_t>({-1, 2, 3}))).values, ElementsAre(-1, 2, 3));
    EXPECT_THAT(read("t.npy", npy_of(">i2", "\xff\xfe\0\2\0\3"s)).values, ElementsAre(-2, 2, 3));
    EXPECT_THAT(refusal("t.npy", npy_of("<u8", raw_bytes<std::uint64_t>({1, std::uint64_t{1} << 63, 3}))),
                HasSubstr("number 1 is 2^63 or more"));
    EXPECT_THAT(refusal("t.npy", npy_of("<f8", std::string(24, '\0'))), HasSubstr("elements of type '<f8'"));
}

TEST_F(TokenFiles, WhatAFileIsItsContentTells) {
    EXPECT_THAT(read("t.txt", npy_of("<u2", raw_bytes<std::uint16_t>({1, 2, 200}))).values, ElementsAre(1, 2, 200));
    EXPECT_THAT(read("t", "[1, 2]").values, ElementsAre(1, 2));
    EXPECT_THAT(read("t.json", "1 2, 3").values, ElementsAre(1, 2, 3));
    EXPECT_THAT(read("t.txt",
                     "\xef\xbb\xbf"
                     "7 8")
                    .values,
                ElementsAre(7, 8))
        << "UTF-8 as Windows marks it";
    EXPECT_THAT(refusal("t.npy", "1 2 3"), HasSubstr("not a .npy file"));
    EXPECT_THAT(refusal("t.txt", "\xff\xfe\x31\0"s), HasSubstr("UTF-16 text; save it as UTF-8"));
    EXPECT_THAT(refusal("t.txt", "version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS pointer"));
    EXPECT_THAT(refusal("t.parquet", "PAR1\x15\4\x15\0"s), HasSubstr("a Parquet file"));
    EXPECT_THAT(refusal("t.txt.gz", "\x1f\x8b\x08\0\0\0"s), HasSubstr("unpack it first (gunzip)"));
    EXPECT_THAT(refusal("t.npz", "PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.npy"s),
                HasSubstr("a NumPy archive"));
    EXPECT_THAT(
        refusal("t.pt", "PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"s),
        AllOf(HasSubstr("torch.save"), HasSubstr("numpy.save")));
}

TEST_F(TokenFiles, RawNumbersNeedATypeBehindAColon) {
    const std::string tokens = raw_bytes<std::uint16_t>({1, 2, 50256});
    EXPECT_THAT(read("train.bin", tokens, ":uint16").values, ElementsAre(1, 2, 50256));
    EXPECT_THAT(read("train.bin", raw_bytes<std::uint32_t>({1, 128000}), ":uint32").values, ElementsAre(1, 128000));
    EXPECT_THAT(read("train.bin", raw_bytes<std::int64_t>({-1}), ":int64").values, ElementsAre(-1));
    EXPECT_THAT(read("train.bin", "\xef\xbb\xbf\0"s, ":uint16").values, ElementsAre(0xbbef, 0xbf)) << "no mark of text";
    EXPECT_THAT(refusal("train.bin", tokens), HasSubstr("name it behind a colon, as train.bin:uint16"));
    EXPECT_THAT(refusal("tokens", tokens), HasSubstr("raw numbers, whose type nothing tells"));
    EXPECT_THAT(refusal("train.bin", "123", ":uint16"), HasSubstr("3 bytes are no whole number of uint16"));
    EXPECT_THAT(refusal("train.bin", tokens, ":uint24"), HasSubstr("'uint24' is no type; raw numbers are uint8"));
    EXPECT_THAT(refusal("t.npy", npy_of("<u2", tokens), ":uint16"),
                HasSubstr("says its type itself; leave out :uint16"));
    EXPECT_THAT(read("odd:uint16", "4 5").values, ElementsAre(4, 5)) << "a name of that kind is a name";
}

TEST_F(TokenFiles, LlmcsFilesSayTheirTypeThemselves) {
    const std::string tokens = raw_bytes<std::uint16_t>({1, 2, 50256});
    EXPECT_THAT(read("t.bin", llmc(20240520, 1, 3, tokens)).values, ElementsAre(1, 2, 50256));
    EXPECT_THAT(read("t.bin", llmc(20240520, 1, 3, tokens), ":uint16").values, ElementsAre(1, 2, 50256));
    EXPECT_THAT(read("t.bin", llmc(20240801, 7, 1, raw_bytes<std::uint32_t>({128000}))).values, ElementsAre(128000));
    EXPECT_THAT(refusal("t.bin", llmc(20240520, 1, 4, tokens)), HasSubstr("its header says 4 tokens, and 3 follow it"));
    EXPECT_THAT(refusal("t.bin", llmc(20240520, 2, 3, tokens)), HasSubstr("of version 2; 1 is known"));
    EXPECT_THAT(refusal("t.bin", llmc(20240520, 1, 3, tokens), ":uint32"), HasSubstr("which holds uint16"));
    EXPECT_THAT(refusal("t.bin", llmc(20240520, 1, 3, "").substr(0, 99)), HasSubstr("truncated in its header"));
}

TEST_F(TokenFiles, JsonIsListsOrWhatTokenizersGive) {
    EXPECT_THAT(read("t.json", " [1, 2, 3]\n").values, ElementsAre(1, 2, 3));
    for (const char* text :
         {"[[1, 2], [3, 4]]", R"({"input_ids": [[1, 2], [3, 4]], "attention_mask": [[1, 1], [1, 1]]})",
          "{\"tokens\": [1, 2]}\n{\"tokens\": [3, 4]}\n", "[1, 2]\n\n[3, 4]",
          R"([{"ids": [1, 2]}, {"ids": [3, 4]}])"}) {
        const IntegerArray array = read("t.jsonl", text);
        EXPECT_THAT(array.shape, ElementsAre(2, 2)) << text;
        EXPECT_THAT(array.values, ElementsAre(1, 2, 3, 4)) << text;
    }
    EXPECT_THAT(refusal("t.json", "[1, 2.5]"), HasSubstr("token 1 is 2.5; it should be an integer"));
    EXPECT_THAT(refusal("t.json", "[1, null]"), HasSubstr("token 1 is null"));
    EXPECT_THAT(refusal("t.json", "[1, [2]]"), HasSubstr("token 1 is a JSON array"));
    EXPECT_THAT(refusal("t.json", "[1, 18446744073709551615]"), HasSubstr("token 1 is 18446744073709551615"));
    EXPECT_THAT(refusal("t.json", R"({"text": "hello"})"), HasSubstr("it should have input_ids, tokens"));
    EXPECT_THAT(refusal("t.json", "[1, 2"), HasSubstr("line 1 is not JSON"));
    EXPECT_THAT(refusal("t.jsonl", "[1, 2]\n{\"ids\": 3}"), HasSubstr("3; it should be a list"));
    EXPECT_THAT(refusal("t.json", "[[1, 2], [3]]"), HasSubstr("row 1 has 1 tokens, row 0 has 2"));
    EXPECT_THAT(read("t.json", "[[1, 2], [3]]", "", RowLengths::of_any).values, ElementsAre(1, 2, 3));
}

TEST_F(TokenFiles, APipeIsReadOnceHoweverOftenItIsAskedFor) {
    const std::string pipe = directory_ / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(pipe) << "1 2" << std::flush << " 3"; });
    EXPECT_THAT(read_integers(pipe, "token").values, ElementsAre(1, 2, 3));
    writer.join();
    EXPECT_THAT(read_integers(pipe, "token").values, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace kbench
