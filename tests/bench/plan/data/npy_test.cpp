// Files as NumPy writes and reads them, byte by byte, and damaged ones.
#include "bench/plan/data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class Value>
std::string bytes_of(std::initializer_list<Value> values) {
    return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(Value)};
}

std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
    std::string length{static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
    if (version == 2) length += std::string(2, '\0');
    return std::string("\x93NUMPY") + version + '\0' + length + dictionary + data;
}

TEST(WriteNpy, WritesTheBytesThatNumpyWrites) {
    const TemporaryDirectory directory;
    const float rows[] = {1, 2, 3, -1, 4, 5, 6, -1};  // rows of 3, padded to 4
    write_npy(directory / "a.npy", std::vector<std::int64_t>{2, 3}, DataType::fp32, rows, 4);
    // numpy.save(…, numpy.array([[1, 2, 3], [4, 5, 6]], dtype='<f4')), NumPy 1.24.
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    header.append(117 - header.size(), ' ');
    header += '\n';
    EXPECT_EQ(content(directory / "a.npy"),
              std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + bytes_of<float>({1, 2, 3, 4, 5, 6}));
}

TEST(WriteNpy, HeaderAlignsTheDataForEveryShape) {
    const TemporaryDirectory directory;
    std::vector<std::int64_t> shape;
    for (int dimensions = 1; dimensions < 32; ++dimensions) {  // the header grows by three bytes a time
        shape.push_back(1);
        const float one = 1;
        write_npy(directory / "a.npy", shape, DataType::fp32, &one, 1);
        ASSERT_EQ(content(directory / "a.npy").size() % 64, sizeof one) << dimensions;
    }
}

TEST(WriteNpy, WidensBf16AndKeepsTheOthers) {
    const TemporaryDirectory directory;
    const std::vector<std::int64_t> shape{2};
    const auto written = [&](DataType type, const void* data) {
        write_npy(directory / "a.npy", shape, type, data, 2);
        return content(directory / "a.npy");
    };
    const std::uint16_t bf16[] = {0x3f80, 0xc000}, fp16[] = {0x3c00, 0xc000};
    const double fp64[] = {1, -2};
    EXPECT_THAT(written(DataType::bf16, bf16),
                testing::AllOf(HasSubstr("'<f4'"), testing::EndsWith(bytes_of<float>({1, -2}))));
    EXPECT_THAT(written(DataType::fp16, fp16),
                testing::AllOf(HasSubstr("'<f2'"), testing::EndsWith(bytes_of<std::uint16_t>({0x3c00, 0xc000}))));
    EXPECT_THAT(written(DataType::fp64, fp64),
                testing::AllOf(HasSubstr("'<f8'"), HasSubstr("(2,)"), testing::EndsWith(bytes_of<double>({1, -2}))));
}

TEST(WriteNpy, LeavesNoTemporaryFileAndSaysWhatItCannotWrite) {
    const TemporaryDirectory directory;
    const float one = 1;
    write_npy(directory / "a.npy", std::vector<std::int64_t>{1}, DataType::fp32, &one, 1);
    EXPECT_FALSE(std::filesystem::exists(directory / "a.npy.tmp"));
    const std::string line = error_line<UsageError>(
        [&] { write_npy(directory / "no/a.npy", std::vector<std::int64_t>{1}, DataType::fp32, &one, 1); });
    EXPECT_THAT(line, HasSubstr("no/a.npy"));
    std::filesystem::create_directories(directory / "taken.npy/x");
    error_line<UsageError>(
        [&] { write_npy(directory / "taken.npy", std::vector<std::int64_t>{1}, DataType::fp32, &one, 1); });
    EXPECT_FALSE(std::filesystem::exists(directory / "taken.npy.tmp"));
}

TEST(ReadNpy, ReadsInt32AndInt64InBothVersions) {
    const TemporaryDirectory directory;
    const auto narrow = directory.write("a.npy", npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }\n",
                                                     bytes_of<std::int32_t>({1, -2, 3, 4})));
    EXPECT_THAT(read_npy_integers(narrow).shape, ElementsAre(2, 2));
    EXPECT_THAT(read_npy_integers(narrow).values, ElementsAre(1, -2, 3, 4));
    const auto wide = directory.write("b.npy", npy("{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"<i8\"}",
                                                   bytes_of<std::int64_t>({1, 1LL << 40}), 2));
    EXPECT_THAT(read_npy_integers(wide).shape, ElementsAre(2));
    EXPECT_THAT(read_npy_integers(wide).values, ElementsAre(1, 1LL << 40));
}

TEST(ReadNpy, SaysWhatIsWrongWithAFile) {
    const TemporaryDirectory directory;
    const auto line = [&](const std::string& bytes) {
        const auto path = directory.write("bad.npy", bytes);
        const std::string text = error_line<UsageError>([&] { read_npy_integers(path); });
        EXPECT_THAT(text, HasSubstr("bad.npy"));
        return text;
    };
    const std::string data = bytes_of<std::int32_t>({1, 2});
    EXPECT_THAT(line("PK\x03\x04"), HasSubstr("not a .npy file"));
    EXPECT_THAT(line("\x93NUMPY"), HasSubstr("format 0"));
    EXPECT_THAT(line(npy("{}", "", 3)), HasSubstr("format 3; 1 and 2"));
    EXPECT_THAT(line(std::string("\x93NUMPY\x01\x00\x76", 9)), HasSubstr("truncated"));
    EXPECT_THAT(line(std::string("\x93NUMPY\x01\x00\x76\x00{", 11)), HasSubstr("118 bytes but only 1"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': False}", data)), HasSubstr("'shape'"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2", data)), HasSubstr("'shape'"));
    EXPECT_THAT(line(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data)),
                HasSubstr("'<f4'; tokens are integers"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 1)}", data)), HasSubstr("Fortran"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", data)),
                HasSubstr("8 bytes of data"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", data)),
                HasSubstr("8 bytes of data"));
    EXPECT_THAT(line(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", data)),
                HasSubstr("8 bytes of data"));
    error_line<UsageError>([&] { read_npy_integers(directory / "missing.npy"); });
}

}  // namespace
}  // namespace kbench
