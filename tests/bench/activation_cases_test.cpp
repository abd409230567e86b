// Each activation that a GPT-2's config.json can name, through the built program: logits and a gradient that passes
// through it, against an implementation in NumPy, fp64, whose gradients its own differences confirm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/npy.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

/// A name of transformers, and whose files hold what it computes.
struct Named {
    const char *name, *files;
};
constexpr Named names[] = {{"gelu_new", "gelu_new"},
                           {"gelu_pytorch_tanh", "gelu_new"},
                           {"gelu_python_tanh", "gelu_new"},
                           {"gelu_accurate", "gelu_new"},
                           {"gelu_fast", "gelu_fast"},
                           {"gelu", "gelu"},
                           {"gelu_python", "gelu"},
                           {"quick_gelu", "quick_gelu"},
                           {"relu", "relu"},
                           {"silu", "silu"},
                           {"swish", "silu"},
                           {"tanh", "tanh"}};

class ActivationCases : public Program {
  protected:
    static std::filesystem::path file(const std::string& name) {
        return std::filesystem::path(KBENCH_SOURCE_DIR) / "tests/bench/cases/activations" / name;
    }
    std::string run(const std::string& activation, const std::string& more) {
        const std::string path = config(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
            "vocab_size": 61, "n_positions": 16, "activation_function": )" +
                                        activation + "}");
        return "--config " + path + " --weights " + file("model.safetensors").string() + " --tokens " +
               file("ids.npy").string() +
               " --seq 9 --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none " + more + " --out " +
               (directory_ / "run").string();
    }
    void expect_near(const std::vector<double>& got, const std::string& want, double most) {
        const FloatArray wanted = read_npy_floats(file(want));
        ASSERT_EQ(got.size(), wanted.values.size());
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted.values[i], most) << want << " " << i;
    }
};

TEST_F(ActivationCases, EveryNameGivesTheLogitsThatNumPyComputes) {
    const std::filesystem::path logits = directory_ / "logits.npy";
    for (const auto& [name, files] : names) {
        SCOPED_TRACE(name);
        std::filesystem::remove_all(directory_ / "run");
        const Outcome outcome =
            kbench(run('"' + std::string(name) + '"', "--precision fp64 --dump-logits " + logits.string()));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        expect_near(read_npy_floats(logits).values, std::string(files) + ".logits.npy", 1e-12);
    }
}

TEST_F(ActivationCases, TrainingsGradientPassesThroughTheSlope) {
    const std::filesystem::path gradients = directory_ / "gradients.safetensors";
    const Tensor bias{.name = "h.0.mlp.c_fc.bias", .role = Role::weights, .shape = {128}};
    for (const char* name : {"gelu_new", "gelu_fast", "gelu", "quick_gelu", "relu", "silu", "tanh"})
        for (const char* how : {"", " --recompute block"}) {
            SCOPED_TRACE(std::string(name) + how);
            std::filesystem::remove_all(directory_ / "run");
            std::filesystem::remove(gradients);
            const Outcome outcome =
                kbench(run('"' + std::string(name) + '"',
                           "--precision fp64 --direction bwd --dump-gradients " + gradients.string() + how));
            ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
            std::vector<double> got(128);
            Checkpoint(gradients).load(bias, DataType::fp64, got.data(), 128);
            expect_near(got, std::string(name) + ".gradient.npy", 1e-13);
        }
}

TEST_F(ActivationCases, InFp32WhereOneDnnFusesItTheLogitsAreThose) {
    const std::filesystem::path logits = directory_ / "logits.npy";
    for (const char* name : {"gelu_new", "gelu_fast", "gelu", "quick_gelu", "relu", "silu", "tanh"}) {
        SCOPED_TRACE(name);
        std::filesystem::remove_all(directory_ / "run");
        const Outcome outcome =
            kbench(run('"' + std::string(name) + '"', "--precision fp32 --dump-logits " + logits.string()));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        expect_near(read_npy_floats(logits).values, std::string(name) + ".logits.npy", 1e-5);
    }
}

TEST_F(ActivationCases, AnotherIsRefusedWithTheListOfThose) {
    const std::string list =
        "is not supported; gelu_new, gelu_pytorch_tanh, gelu_python_tanh, gelu_accurate, gelu_fast, gelu, gelu_python, quick_gelu, relu, silu, swish, tanh are";
    expect_refusal(run(R"("mish")", ""), "activation_function 'mish' " + list);
    expect_refusal(run(R"("GELU")", ""), "activation_function 'GELU' " + list);
    expect_refusal(run("null", ""), "activation_function 'null' " + list);
    expect_refusal(run("3", ""), "key 'activation_function' is 3; it must be a string");
}

TEST_F(ActivationCases, OneOpOfEachIsMeasured) {
    for (const char* op : {"gelu", "gelu_fast", "gelu_erf", "quick_gelu", "relu", "silu", "tanh"})
        for (const char* direction : {"fwd", "bwd"}) {
            SCOPED_TRACE(std::string(op) + " " + direction);
            const std::string out = (directory_ / (std::string(op) + direction)).string();
            const Outcome outcome =
                kbench(std::string("micro --backend cpu --op ") + op +
                       " --shape r8w64 --precision fp32 --provider native --cache hot " + "--direction " + direction +
                       " --ceilings none --counters none --time-budget 0.01 --out " + out);
            EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
            EXPECT_THAT(outcome.out, testing::HasSubstr(op)) << outcome.out;
        }
}

}  // namespace
}  // namespace kbench
