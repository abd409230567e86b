// Weight sources: good safetensors files in every type, and every way in which one can be wrong.
#include "bench/plan/data/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

template <class Value>
std::string file_bytes_of(std::initializer_list<Value> values) {
    return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(Value)};
}

Tensor weight(const std::string& name, std::int64_t rows, std::int64_t columns, bool is_vector = false) {
    return {
        .name = name, .role = Role::weights, .shape = is_vector ? std::vector{columns} : std::vector{rows, columns}};
}

Model model_of(std::vector<Tensor> tensors) {
    Model model;
    model.name = "tiny";
    model.tensors = std::move(tensors);
    return model;
}

class SafetensorsFile : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& bytes) { return directory_.write("model.safetensors", bytes); }
    std::string refusal(const std::string& bytes) {
        const auto path = write(bytes);
        const std::string line = error_line<UsageError>([&] { const Checkpoint file(path); });
        EXPECT_THAT(line, HasSubstr("model.safetensors: "));
        return line;
    }
    /// A file with one tensor "w", fp32 [2, 2] = 1 2 3 4, unless `entry` says otherwise.
    static std::string one(const std::string& entry) {
        return file_of(R"({"w":)" + entry + "}", file_bytes_of<float>({1, 2, 3, 4}));
    }

    TemporaryDirectory directory_;
};

TEST_F(SafetensorsFile, ConvertsEveryTypeIntoStridedRows) {
    const auto path = write(file_of(
        R"({"__metadata__":{"format":"pt"},
            "half":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]},
            "brain":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]},
            "single":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},
            "double":{"dtype":"F64","shape":[2,2],"data_offsets":[32,64]}})",
        file_bytes_of<std::uint16_t>({0x3c00, 0x4000, 0x4200, 0x4400}) +
            file_bytes_of<std::uint16_t>({0x3f80, 0x4000, 0x4040, 0x4080}) + file_bytes_of<float>({1, 2, 3, 4}) +
            file_bytes_of<double>({1, 2, 3, 4})));
    Checkpoint file(path);
    for (const char* name : {"half", "brain", "single", "double"}) {
        std::vector<double> wide(6, -1);
        std::vector<float> single(6, -1);
        std::vector<std::uint16_t> half(6, 7), brain(6, 7);
        file.load(weight(name, 2, 2), DataType::fp64, wide.data(), 3);
        file.load(weight(name, 2, 2), DataType::fp32, single.data(), 3);
        file.load(weight(name, 2, 2), DataType::fp16, half.data(), 3);
        file.load(weight(name, 2, 2), DataType::bf16, brain.data(), 3);
        EXPECT_THAT(wide, ElementsAre(1, 2, -1, 3, 4, -1)) << name;
        EXPECT_THAT(single, ElementsAre(1, 2, -1, 3, 4, -1)) << name;
        EXPECT_THAT(half, ElementsAre(0x3c00, 0x4000, 7, 0x4200, 0x4400, 7)) << name;
        EXPECT_THAT(brain, ElementsAre(0x3f80, 0x4000, 7, 0x4040, 0x4080, 7)) << name;
    }
}

TEST_F(SafetensorsFile, AcceptsThePrefixAndIgnoresWhatTheModelLacks) {
    const auto path = write(file_of(
        R"({"transformer.h.0.ln_1.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "transformer.h.0.attn.bias":{"dtype":"BOOL","shape":[1,1,2,2],"data_offsets":[8,12]},
            "transformer.h.0.attn.masked_bias":{"dtype":"SOMETHING_NEW","shape":[],"data_offsets":[12,13]},
            "lm_head.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[13,17]}})",
        file_bytes_of<float>({5, 6}) + std::string(9, '\0')));
    CheckpointWeights weights(path);
    weights.check(
        model_of({weight("h.0.ln_1.weight", 1, 2, true), {.name = "x", .role = Role::activations, .shape = {9, 9}}}));
    std::vector<float> values(2);
    weights.read(weight("h.0.ln_1.weight", 1, 2, true), DataType::fp32, values.data(), 2);
    EXPECT_THAT(values, ElementsAre(5, 6));
    EXPECT_EQ(weights.name(), "model.safetensors");
}

TEST_F(SafetensorsFile, HasNoCacheWhichIsRandomThen) {
    const auto path =
        write(file_of(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", file_bytes_of<float>({5})));
    CheckpointWeights weights(path, 7);
    RandomWeights random(7);
    const Tensor cache{.name = "h.0.attn.key_cache", .role = Role::cache, .shape = {3, 5}, .resident = true};
    std::vector<float> values(15), expected(15);
    weights.read(cache, DataType::fp32, values.data(), 5);
    random.read(cache, DataType::fp32, expected.data(), 5);
    EXPECT_EQ(values, expected);
    EXPECT_NE(values[0], values[1]);
}

TEST_F(SafetensorsFile, ReadsDataThatIsNotAligned) {
    const auto path = write(file_of(R"({"w":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}} )" + std::string(3, ' '),
                                    file_bytes_of<double>({1, 2})));
    std::vector<float> values(2);
    Checkpoint(path).load(weight("w", 1, 2, true), DataType::fp32, values.data(), 2);
    EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST_F(SafetensorsFile, RefusesATruncatedFile) {
    const std::string whole = one(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})");
    EXPECT_NO_THROW(Safetensors(write(whole)));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_THROW(Safetensors(write(whole.substr(0, bytes))), UsageError) << bytes;
    EXPECT_THAT(refusal("short"), HasSubstr("5 bytes"));
    EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1)),
                AllOf(HasSubstr("w: data_offsets are [0, 16]"), HasSubstr("15 bytes of data")));
}

TEST_F(SafetensorsFile, RefusesAHeaderBeyondTheFile) {
    EXPECT_THAT(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10)), HasSubstr("header of 16 bytes, but 2 bytes"));
    EXPECT_THAT(refusal(std::string(8, '\xff') + "{}"), HasSubstr("header of 18446744073709551615 bytes"));
}

TEST_F(SafetensorsFile, RefusesAHeaderThatIsNotAnObjectOfTensors) {
    EXPECT_THAT(refusal(file_of("{\"w\":", "")), HasSubstr("not JSON"));
    EXPECT_THAT(refusal(file_of("[1]", "")), HasSubstr("array; it should be an object"));
    EXPECT_THAT(refusal(one("3")), HasSubstr("w: is a JSON number"));
    EXPECT_THAT(refusal(one(R"({"dtype":7,"shape":[4],"data_offsets":[0,16]})")), HasSubstr("w: dtype is 7"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","data_offsets":[0,16]})")), HasSubstr("w: shape is null"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})")), HasSubstr("w: shape is [-4]"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0]})")), HasSubstr("[begin, end]"));
    EXPECT_THAT(refusal(file_of(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                                    "w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                std::string(8, '\0'))),
                HasSubstr("w: stands twice"));
}

TEST_F(SafetensorsFile, RefusesOffsetsThatDoNotFit) {
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[4],"data_offsets":[4,20]})")), HasSubstr("[4, 20], but 16"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})")), HasSubstr("[16, 0]"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,16]})")),
                HasSubstr("F32 [3] needs 12 bytes, but data_offsets [0, 16] hold 16"));
    EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})")),
                HasSubstr("more than 2^64"));
    EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                                    "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                std::string(12, '\0'))),
                HasSubstr("b: data_offsets [4, 12] overlap those of a, [0, 8]"));
}

TEST_F(SafetensorsFile, RefusesAnotherShapeTypeOrName) {
    Checkpoint file(write(one(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})")));
    EXPECT_NO_THROW(file.check(model_of({weight("w", 2, 2)})));
    EXPECT_THAT(error_line<UsageError>([&] { file.check(model_of({weight("w", 4, 1)})); }),
                HasSubstr("w: shape [2, 2]; the model needs [4, 1]"));
    EXPECT_THAT(error_line<UsageError>([&] { file.check(model_of({weight("w", 1, 4, true)})); }),
                HasSubstr("the model needs [4]"));
    EXPECT_THAT(error_line<UsageError>([&] {
                    file.check(model_of({weight("w", 2, 2), weight("y", 1, 1), weight("x", 1, 1)}));
                }),
                HasSubstr("y: missing, the first of 2 missing of the 3 weights of tiny"));
    float value = 0;
    EXPECT_THAT(error_line<UsageError>([&] { file.load(weight("y", 1, 1), DataType::fp32, &value, 1); }),
                HasSubstr("y: missing"));

    Checkpoint integers(write(one(R"({"dtype":"I32","shape":[2,2],"data_offsets":[0,16]})")));
    EXPECT_THAT(error_line<UsageError>([&] { integers.check(model_of({weight("w", 2, 2)})); }),
                HasSubstr("w: dtype I32; weights are F16, BF16, F32 or F64"));
}

TEST_F(SafetensorsFile, RefusesWhatIsNotAFile) {
    EXPECT_THAT(error_line<UsageError>([&] { Safetensors(directory_ / "missing"); }), HasSubstr("No such file"));
    EXPECT_THAT(error_line<UsageError>([&] { Checkpoint(directory_ / ""); }),
                HasSubstr("a folder without a .safetensors"));
    EXPECT_THAT(error_line<UsageError>([&] { Safetensors("/dev/null"); }), HasSubstr("not a regular file"));
}

TEST(RandomWeights, AreThoseOfTheSeedAndTheTensorsName) {
    Tensor tensor = weight("wte.weight", 3, 5);
    tensor.contents = Contents::normal(0.02);
    std::vector<float> actual(15), expected(15);
    RandomWeights(9).read(tensor, DataType::fp32, actual.data(), 5);
    fill_normal(9, "wte.weight", 0.02, DataType::fp32, expected.data(), 15);
    EXPECT_EQ(actual, expected);
    EXPECT_EQ(RandomWeights(9).name(), "random");
}

}  // namespace
}  // namespace kbench
