// Checkpoints as people have them, given to the built program: shards with an index, names behind a prefix, nn.Linear's
// layout, and a pointer of Git LFS. The logits are held against an implementation in NumPy, fp64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "bench/plan/data/npy.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class CheckpointCases : public Program {
  protected:
    static std::filesystem::path files_of(const std::string& name) {
        return std::filesystem::path(KBENCH_SOURCE_DIR) / "tests/bench/cases" / name;
    }
    std::string run(const std::string& name, const std::string& weights) {
        const std::filesystem::path folder = files_of(name);
        return "--config " + (folder / "config.json").string() + " --weights " + (folder / weights).string() +
               " --tokens " + (files_of("sharded-index") / "ids.npy").string() +
               " --seq 9 --precision fp64 --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none --dump-logits " +
               logits() + " --out " + (directory_ / "run").string();
    }
    void expect_logits(const std::string& name, const std::string& weights) {
        std::filesystem::remove_all(directory_ / "run");
        const Outcome outcome = kbench(run(name, weights));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const FloatArray got = read_npy_floats(logits()), want = read_npy_floats(files_of(name) / "want.npy");
        ASSERT_EQ(got.values.size(), want.values.size());
        for (std::size_t i = 0; i < want.values.size(); ++i) ASSERT_NEAR(got.values[i], want.values[i], 1e-12) << i;
    }
    std::string logits() const { return (directory_ / "logits.npy").string(); }
};

TEST_F(CheckpointCases, ShardsAreReadThroughTheirIndexOrTheirFolder) {
    expect_logits("sharded-index", "model.safetensors.index.json");
    EXPECT_THAT(read_text(directory_ / "run/result.json"),
                HasSubstr("model.safetensors.index.json, 116572 bytes, hash"))
        << "index and shards";
    expect_logits("sharded-index", "");
}

TEST_F(CheckpointCases, TorchCompilesPrefixIsNoPartOfAName) { expect_logits("compiled-prefix", "model.safetensors"); }

TEST_F(CheckpointCases, LinearLayersOfNanoGptAreTransposed) { expect_logits("linear-layout", "model.safetensors"); }

TEST_F(CheckpointCases, AGitLfsPointerIsCalledOne) {
    expect_refusal(run("lfs-pointer", "model.safetensors"), "a Git LFS pointer: the file itself was not downloaded");
}

TEST_F(CheckpointCases, ADumpMayNotReplaceAShardOfTheWeights) {
    std::filesystem::copy(files_of("sharded-index"), directory_ / "copy");
    const std::string copy = (directory_ / "copy").string();
    expect_refusal("--config " + copy + "/config.json --seq 8 --direction bwd --backend cpu --weights " + copy +
                       " --dump-gradients " + copy + "/model-00002-of-00002.safetensors --out " +
                       (directory_ / "run").string(),
                   "is the file of --weights " + copy + "/model-00002-of-00002.safetensors too");
    expect_refusal("train --config " + copy + "/config.json --weights " + copy + " --save " + copy +
                       "/model-00002-of-00002.safetensors",
                   "is a part of --weights " + copy);
}

}  // namespace
}  // namespace kbench
