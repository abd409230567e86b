// Checkpoints as people have them: shards, folders, prefixes, transposed matrices; and files that are something else.
#include "bench/plan/data/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <numeric>

#include "bench/plan/data/other_formats.h"
#include "bench/plan/data/write_safetensors.h"
#include "kbench/error.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Shape = std::vector<std::int64_t>;

/// Numbers 1, 2, 3 and so on, fp32.
SafetensorsTensor counting(const std::string& name, const Shape& shape, float first = 1) {
    return {name, DataType::fp32, shape, [shape, first](const FileSink& sink) {
                std::vector<float> numbers(static_cast<std::size_t>(
                    std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies())));
                std::iota(numbers.begin(), numbers.end(), first);
                sink(std::as_bytes(std::span(numbers)));
            }};
}

Tensor weight(const std::string& name, const Shape& shape) {
    return {.name = name, .role = Role::weights, .shape = shape};
}

Model model_of(std::vector<Tensor> tensors) {
    Model model;
    model.name = "tiny";
    model.tensors = std::move(tensors);
    return model;
}

/// y = x · wide, z = y · square: products of [in, out] matrices, as GPT-2's.
Model two_products() {
    Model model = model_of({weight("wide", {2, 3}), weight("square", {3, 3})});
    model.tensors.push_back({.name = "x", .shape = {1, 2}});
    model.tensors.push_back({.name = "y", .shape = {1, 3}});
    model.tensors.push_back({.name = "z", .shape = {1, 3}});
    model.ops.push_back({Gemm{1, 3, 2}, "a", {2, 0}, {3}});
    model.ops.push_back({Gemm{1, 3, 3}, "b", {3, 1}, {4}});
    return model;
}

class Checkpoints : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& name, const std::vector<SafetensorsTensor>& tensors) const {
        std::filesystem::create_directories((directory_ / name).parent_path());
        write_safetensors(directory_ / name, tensors);
        return directory_ / name;
    }
    static std::vector<float> read(const Checkpoint& checkpoint, const Tensor& tensor) {
        std::vector<float> numbers(static_cast<std::size_t>(tensor.elements()));
        checkpoint.load(tensor, DataType::fp32, numbers.data(), tensor.columns());
        return numbers;
    }
    static std::string refusal(const std::filesystem::path& path) {
        const std::string line = error_line<UsageError>([&] { Checkpoint{path}; });
        EXPECT_THAT(line, HasSubstr(path.string()));
        return line;
    }
    std::string index_refusal(const std::string& text) const {
        return refusal(directory_.write("model.safetensors.index.json", text));
    }

    TemporaryDirectory directory_;
};

TEST_F(Checkpoints, FillsAWeightWithItsPartsOneBelowTheOther) {
    Tensor qkv = weight("qkv.weight", {4, 3}), bias = weight("qkv.bias", {4});
    qkv.parts = {{"q.weight", 1}, {"k.weight", 2}, {"v.weight", 1}};
    bias.parts = {{"q.bias", 1}, {"k.bias", 2}, {"v.bias", 1}};
    const Model model = model_of({qkv, bias});
    const auto path =
        write("parts.safetensors", {counting("model.v.weight", {1, 3}, 10), counting("model.k.weight", {2, 3}, 4),
                                    counting("model.q.weight", {1, 3}, 1), counting("model.q.bias", {1}, 1),
                                    counting("model.k.bias", {2}, 2), counting("model.v.bias", {1}, 4)});
    Checkpoint checkpoint(path);
    checkpoint.check(model);
    std::vector<float> apart(4 * 5, 0.f);  // rows five elements apart
    checkpoint.load(qkv, DataType::fp32, apart.data(), 5);
    EXPECT_THAT(apart, ElementsAre(1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 7, 8, 9, 0, 0, 10, 11, 12, 0, 0));
    EXPECT_THAT(read(checkpoint, bias), ElementsAre(1, 2, 3, 4));

    const auto lacking = write("lacking.safetensors", {counting("q.weight", {1, 3}), counting("v.weight", {1, 3})});
    EXPECT_THAT(error_line<UsageError>([&] { Checkpoint(lacking).check(model); }),
                HasSubstr("k.weight: missing, the first of 4 missing of the 6 weights of tiny"));
    const auto wrong = write("wrong.safetensors", {counting("q.weight", {2, 3}), counting("k.weight", {2, 3}),
                                                   counting("v.weight", {1, 3})});
    EXPECT_THAT(error_line<UsageError>([&] { Checkpoint(wrong).check(model); }),
                HasSubstr("q.weight: shape [2, 3]; the model needs [1, 3]"));
}

TEST_F(Checkpoints, AnIndexReadsItsShardsAndAFolderItsIndexOrItsOneFile) {
    write("two/model-00001-of-00002.safetensors", {counting("a", {2})});
    write("two/model-00002-of-00002.safetensors", {counting("transformer.b", {2}, 3)});
    const std::filesystem::path without_index = directory_ / "two";
    EXPECT_THAT(read(Checkpoint(without_index), weight("b", {2})), ElementsAre(3, 4)) << "all shards are there";
    const auto index = directory_.write(
        "two/model.safetensors.index.json",
        R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "transformer.b": "model-00002-of-00002.safetensors"}})");
    write("one/adam.safetensors", {counting("a", {2}), counting("b", {2}, 3)});
    for (const std::filesystem::path& path : {index, directory_ / "two", directory_ / "two/", directory_ / "one"}) {
        Checkpoint checkpoint(path);
        checkpoint.check(model_of({weight("a", {2}), weight("b", {2})}));
        EXPECT_THAT(read(checkpoint, weight("a", {2})), ElementsAre(1, 2)) << path;
        EXPECT_THAT(read(checkpoint, weight("b", {2})), ElementsAre(3, 4)) << path;
    }
    EXPECT_EQ(CheckpointWeights(directory_ / "two/").name(), "two");
    EXPECT_EQ(CheckpointWeights(index).name(), "model.safetensors.index.json");
    EXPECT_EQ(files_of_checkpoint(directory_ / "two").size(), 3u);
}

TEST_F(Checkpoints, AShardThatIsMissingOrElsewhereIsRefused) {
    write("model-1.safetensors", {counting("a", {2})});
    EXPECT_THAT(index_refusal(R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})"),
                AllOf(HasSubstr("b: its shard "), HasSubstr("model-2.safetensors is not there")));
    for (const char* outside : {"../model-1.safetensors", "/model-1.safetensors", "x/../../m.safetensors", ""})
        EXPECT_THAT(index_refusal(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", outside)),
                    HasSubstr("lies outside the index's folder"));
    EXPECT_THAT(index_refusal(R"({"weight_map": {"a": "pytorch_model-00001-of-00002.bin"}})"),
                HasSubstr("is a pickle of PyTorch's, which is not read; save the model as safetensors"));
}

TEST_F(Checkpoints, AnIndexThatContradictsItsShardsIsRefused) {
    write("model-1.safetensors", {counting("a", {2})});
    write("model-2.safetensors", {counting("b", {2})});
    EXPECT_THAT(index_refusal(R"({"weight_map": {"a": "model-1.safetensors", "c": "model-2.safetensors"}})"),
                HasSubstr("c: is said to be in model-2.safetensors, which has no such tensor"));
    EXPECT_THAT(index_refusal(R"({"weight_map": {"a": "model-1.safetensors", "a": "model-2.safetensors"}})"),
                HasSubstr("a: stands twice in the weight_map"));
    write("model-2.safetensors", {counting("a", {2}), counting("b", {2})});
    EXPECT_THAT(
        error_line<UsageError>([&] {
            Checkpoint{directory_.write("model.safetensors.index.json",
                                        R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})")};
        }),
        HasSubstr("model-2.safetensors: a: stands in model-1.safetensors too"));
}

TEST_F(Checkpoints, AnIndexThatIsNoneIsRefused) {
    EXPECT_THAT(index_refusal(R"({"metadata": {}})"), HasSubstr("has no weight_map"));
    EXPECT_THAT(index_refusal(R"([1])"), HasSubstr("has no weight_map"));
    EXPECT_THAT(index_refusal(R"({"weight_map": {"a": 3}})"), HasSubstr("a: its file is 3; it should be a name"));
    EXPECT_THAT(index_refusal(R"({"weight_map": )"), HasSubstr("index is not JSON"));
    EXPECT_THAT(index_refusal(""), HasSubstr("empty"));
    EXPECT_THAT(index_refusal("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS pointer"));
}

TEST_F(Checkpoints, AFolderThatHoldsNoneOrSeveralIsRefused) {
    directory_.write("pickle/pytorch_model.bin", "PK");
    EXPECT_THAT(refusal(directory_ / "pickle"), HasSubstr("pytorch_model.bin is a pickle, which is not read"));
    write("several/a.safetensors", {counting("a", {2})});
    write("several/b.safetensors", {counting("a", {2})});
    EXPECT_THAT(refusal(directory_ / "several"), HasSubstr("name the one to read: a.safetensors, b.safetensors"));
    write("shard/model-00001-of-00002.safetensors", {counting("a", {2})});
    Checkpoint shard(directory_ / "shard/model-00001-of-00002.safetensors");
    EXPECT_THAT(error_line<UsageError>([&] { shard.check(model_of({weight("z", {2})})); }),
                HasSubstr("it is one shard of several: name their index or their folder"));
}

TEST_F(Checkpoints, NamesLoseWhatWrappersPutAround) {
    for (const char* name :
         {"h.0.w", "_orig_mod.h.0.w", "module.h.0.w", "model.h.0.w", "transformer.h.0.w",
          "module._orig_mod.transformer.h.0.w", "_orig_mod.module.model.h.0.w", "transformer.h.0._orig_mod.w",
          "_fsdp_wrapped_module.h._fsdp_wrapped_module.0.w", "h.0._checkpoint_wrapped_module.w"})
        EXPECT_EQ(unwrapped_name(name), "h.0.w") << name;
    EXPECT_EQ(unwrapped_name("module.fc.0.module.1.weight"), "fc.0.module.1.weight") << "a module within is a layer";
    EXPECT_EQ(unwrapped_name("my_orig_mod.w"), "my_orig_mod.w");
    EXPECT_EQ(unwrapped_name("model_ema.w"), "model_ema.w");

    const Checkpoint both(
        write("both.safetensors", {counting("module.w", {2}), counting("w", {2}), counting("v", {2})}));
    EXPECT_THAT(read(both, weight("v", {2})), ElementsAre(1, 2)) << "what the model does not need harms nobody";
    EXPECT_THAT(error_line<UsageError>([&] { read(both, weight("w", {2})); }),
                HasSubstr("there are both module.w and w; one should be left out"));
}

TEST_F(Checkpoints, AMissingTensorIsToldWithWhatThereIsInstead) {
    const auto said = [&](const std::vector<SafetensorsTensor>& tensors) {
        Checkpoint checkpoint(write("model.safetensors", tensors));
        return error_line<UsageError>([&] { checkpoint.check(model_of({weight("h.0.attn.weight", {2})})); });
    };
    EXPECT_THAT(said({counting("gpt.h.0.attn.weight", {2})}),
                HasSubstr("it has gpt.h.0.attn.weight: rename its tensors, without 'gpt.'"));
    EXPECT_THAT(said({counting("h.0.attention.weight", {2}), counting("lm_head", {2})}),
                HasSubstr("it has 2 tensors, such as h.0.attention.weight"));
    EXPECT_THAT(said({}), HasSubstr("it has no tensors"));
}

TEST_F(Checkpoints, WhatWouldChangeTheResultIsNotLeftOut) {
    const auto check = [&](const std::string& more) {
        Checkpoint checkpoint(write("model.safetensors", {counting("module.h.0.ln.weight", {2}),
                                                          counting("module.h.1.ln.weight", {2}), counting(more, {2})}));
        checkpoint.check(model_of({weight("h.0.ln.weight", {2}), weight("h.1.ln.weight", {2})}));
    };
    const auto said = [&](const std::string& more) { return error_line<UsageError>([&] { check(more); }); };
    EXPECT_THAT(said("module.h.2.ln.weight"), HasSubstr("module.h.2.ln.weight: tiny has no such layer"));
    EXPECT_THAT(said("module.h.0.ln.lora_A.weight"), HasSubstr("merge it into them"));
    for (const char* harmless : {"module.h.0.attn.bias", "module.h.0.num_batches_tracked", "lm_head.weight"})
        EXPECT_NO_THROW(check(harmless)) << harmless;
}

TEST_F(Checkpoints, MatricesOfLinearLayersAreTransposedSquareOnesToo) {
    const Model model = two_products();
    Checkpoint linear(write("linear.safetensors", {counting("wide", {3, 2}), counting("square", {3, 3})}));
    linear.check(model);
    EXPECT_THAT(read(linear, model.tensors[0]), ElementsAre(1, 3, 5, 2, 4, 6));
    EXPECT_THAT(read(linear, model.tensors[1]), ElementsAre(1, 4, 7, 2, 5, 8, 3, 6, 9));
    std::vector<double> strided(8, -1);
    linear.load(model.tensors[0], DataType::fp64, strided.data(), 4);
    EXPECT_THAT(strided, ElementsAre(1, 3, 5, -1, 2, 4, 6, -1)) << "what lies between rows is left alone";

    Checkpoint kept(write("kept.safetensors", {counting("wide", {2, 3}), counting("square", {3, 3})}));
    kept.check(model);
    EXPECT_THAT(read(kept, model.tensors[1]), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(Checkpoints, TransposesInEveryTypeAndBeyondOneTile) {
    Model model = model_of({weight("w", {70, 130})});
    model.tensors.push_back({.name = "x", .shape = {1, 70}});
    model.tensors.push_back({.name = "y", .shape = {1, 130}});
    model.ops.push_back({Gemm{1, 130, 70}, "a", {1, 0}, {2}});
    Checkpoint checkpoint(write("w.safetensors", {counting("w", {130, 70})}));
    checkpoint.check(model);
    const std::vector<float> turned = read(checkpoint, model.tensors[0]);
    for (std::size_t r = 0; r < 70; ++r)
        for (std::size_t c = 0; c < 130; ++c)
            ASSERT_EQ(turned[r * 130 + c], static_cast<float>(c * 70 + r + 1)) << r << "," << c;
    std::vector<std::uint16_t> half(70 * 130);
    checkpoint.load(model.tensors[0], DataType::bf16, half.data(), 130);
    EXPECT_EQ(half[130], 0x4000) << "2, the first row's second number in the file";
}

TEST_F(Checkpoints, OneMatrixAloneThatIsTransposedIsRefused) {
    Model model = two_products();
    model.tensors[1].shape = {3, 4};
    model.tensors[4].shape = {1, 4};
    model.ops[1].op = Gemm{1, 4, 3};
    Checkpoint mixed(write("mixed.safetensors", {counting("wide", {3, 2}), counting("square", {3, 4})}));
    EXPECT_THAT(error_line<UsageError>([&] { mixed.check(model); }),
                HasSubstr("square is [in, out] (Conv1D) and wide is [out, in] (nn.Linear)"));

    // What no product reads as [in, out] has one layout only.
    Checkpoint other(write("other.safetensors", {counting("w", {3, 2})}));
    EXPECT_THAT(error_line<UsageError>([&] {
                    other.check(model_of({weight("w", {2, 3})}));
                }),
                HasSubstr("w: shape [3, 2]; the model needs [2, 3]; the matrix is transposed"));
}

TEST_F(Checkpoints, Gpt2IsToldByMatricesThatAreNeverSquare) {
    const Model model = make_gpt2({.name = "tiny", .n_embd = 4, .n_layer = 1, .n_head = 2, .n_ctx = 4, .vocab_size = 4},
                                  1, 2, AttentionKind::fused);
    std::vector<SafetensorsTensor> tensors;
    for (const Tensor& tensor : model.tensors) {
        if (tensor.role != Role::weights) continue;
        const bool is_linear = tensor.shape.size() == 2 && tensor.name.starts_with("h.");
        tensors.push_back(counting("_orig_mod.transformer." + tensor.name,
                                   is_linear ? Shape(tensor.shape.rbegin(), tensor.shape.rend()) : tensor.shape));
    }
    Checkpoint checkpoint(write("nanogpt.safetensors", tensors));
    checkpoint.check(model);
    EXPECT_THAT(read(checkpoint, weight("h.0.attn.c_proj.weight", {4, 4})),
                ElementsAre(1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16));
    EXPECT_EQ(read(checkpoint, weight("wte.weight", {4, 4}))[1], 2) << "embeddings lie as they always do";
}

TEST_F(Checkpoints, AFileOfAnotherKindIsCalledByItsName) {
    using namespace std::string_literals;
    const std::pair<std::string, const char*> kinds[] = {
        {"", "empty"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:3d\nsize 548105171\n", "a Git LFS pointer"},
        {"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"s, "torch.load"},
        {"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.npy"s, "a NumPy archive"},
        {"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.txt"s, "a zip archive"},
        {"\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."s, "a pickle"},
        {"\x80\x04\x95\x10\0\0\0\0\0\0\0"s, "a pickle"},
        {"\x1f\x8b\x08\0\0\0\0\0\0\0"s, "gzip"},
        {"\x28\xb5\x2f\xfd\x04\x88\x01\0\0"s, "zstd"},
        {"\xfd"
         "7zXZ\0\0\x04"s,
         "xz"},
        {"BZh91AY&SY", "bzip2"},
        {std::string(257, 'a') + "ustar\0"s, "tar"},
        {"\n <!DOCTYPE html><html>", "an HTML page"},
        {"<HTML><body>", "an HTML page"},
        {"<?xml version=\"1.0\"?><Error>", "an XML document"},
        {"{\"error\": \"Repository not found\"}", "JSON text"},
        {"GGUF\x03\0\0\0\0\0"s, "GGUF"},
        {"\x89HDF\r\n\x1a\n\0\0"s, "HDF5"},
        {"\x93NUMPY\x01\0v\0{'descr'"s, "a NumPy array"},
        {"\xc6\xd7\x34\x01\x03\0\0\0"s, "a checkpoint of llm.c"},
    };
    for (const auto& [content, what] : kinds)
        EXPECT_THAT(refusal(directory_.write("model.safetensors", content)), HasSubstr(what));
    EXPECT_EQ(other_format("an ordinary file"), "");
}

TEST_F(Checkpoints, APipeIsRefusedAtOnce) {
    const std::string pipe = directory_ / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(refusal(pipe), HasSubstr("a pipe, which cannot be mapped"));
}

}  // namespace
}  // namespace kbench
