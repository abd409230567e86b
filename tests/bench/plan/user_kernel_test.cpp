// Providers and kernels from outside kbench: what registering refuses, what they are asked for, and that they are
// planned, given their workspace and verified like any other.
#include "kbench/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>

#include "bench/device/device.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// Rows into a workspace of 8 bytes an element, then normalised: wrong where the workspace is another's or too small.
constexpr std::size_t workspace_elements = 64 * 64;

void norm_rows(const LayerNorm& norm, const KernelCall& call) {
    ASSERT_EQ(call.precision, Precision::fp64);
    OperandCursor operands = call.operands;
    const auto* x = operands.next<const double>();
    const auto* weight = operands.next<const double>();
    const auto* bias = operands.next<const double>();
    auto* out = operands.next<double>();
    auto* copy = static_cast<double*>(call.workspace);
    const std::int64_t width = norm.width;
    std::copy_n(x, norm.rows * width, copy);
    for (std::int64_t row = 0; row < norm.rows; ++row) {
        double mean = 0, variance = 0;
        for (std::int64_t i = 0; i < width; ++i) mean += copy[row * width + i] / static_cast<double>(width);
        for (std::int64_t i = 0; i < width; ++i)
            variance += std::pow(copy[row * width + i] - mean, 2) / static_cast<double>(width);
        for (std::int64_t i = 0; i < width; ++i)
            out[row * width + i] =
                (copy[row * width + i] - mean) / std::sqrt(variance + norm.epsilon) * weight[i] + bias[i];
    }
}

UserKernel<LayerNorm> norm_kernel(const std::string& name) {
    return {
        .name = name,
        .backend = BackendKind::cpu,
        .what = "a test's layer norm",
        .precisions = {Precision::fp64},
        .run = norm_rows,
        .unsupported = [](const LayerNorm& op, const Step&, Precision) -> std::string {
            return op.width > 64 ? "too wide" : "";
        },
        .workspace_bytes = workspace_elements * sizeof(double),
    };
}

/// The provider of that name, made anew.
std::unique_ptr<Provider> made(const std::string& name) {
    for (const ProviderRow& row : provider_rows())
        if (row.name == name && row.backend == BackendKind::cpu) return row.make({});
    throw std::runtime_error("no provider " + name);
}

Model model_of_squares() {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    return make_gpt2(config, 2, 8, AttentionKind::fused);
}

TEST(Register, ListsAProviderLastAndMakesIt) {
    EXPECT_TRUE(register_kernel(norm_kernel("listed")));
    EXPECT_EQ(provider_rows().back().name, "listed");
    EXPECT_EQ(provider_rows().back().what, "a test's layer norm");
    EXPECT_EQ(made("listed")->name, "listed");
    EXPECT_EQ(made("listed")->workspace_limit, static_cast<std::int64_t>(workspace_elements * sizeof(double)));
}

TEST(Register, RefusesANameThatItsBackendHas) {
    register_kernel(norm_kernel("twice"));
    EXPECT_EQ(error_line<std::invalid_argument>([] { register_kernel(norm_kernel("twice")); }),
              "cpu has a kernel 'twice' for layernorm already");
    EXPECT_THROW(register_kernel(norm_kernel("onednn")), std::invalid_argument);
    UserKernel<LayerNorm> elsewhere = norm_kernel("onednn");
    elsewhere.backend = BackendKind::cuda;
    EXPECT_TRUE(register_kernel(elsewhere)) << "another backend's names are free";
}

TEST(Register, RefusesNamesThatNoOptionCouldGiveAndKernelsThatComputeNothing) {
    const std::size_t before = provider_rows().size();
    for (const char* name : {"", "a,b", "a=b", "*", "two words", "a/b"})
        EXPECT_THROW(register_kernel(norm_kernel(name)), std::invalid_argument) << name;
    UserKernel<LayerNorm> empty = norm_kernel("empty");
    empty.run = {};
    EXPECT_THAT(error_line<std::invalid_argument>([&] { register_kernel(empty); }), HasSubstr("'empty'"));
    EXPECT_EQ(provider_rows().size(), before);
}

TEST(UserKernel, RefusesOtherStepsAndPrecisionsAndWhatItSaysItself) {
    register_kernel(norm_kernel("picky"));
    const auto provider = made("picky");
    const auto refusal = [&](const char* op, const char* shape, Precision precision = Precision::fp64) {
        return provider->unsupported(parse_problem(op, shape), precision);
    };
    EXPECT_EQ(refusal("residual", "r8w64"), "has no residual");
    EXPECT_EQ(refusal("layernorm", "r8w64", Precision::fp32), "has no layernorm in fp32");
    EXPECT_EQ(refusal("layernorm", "r8w64+residual"), "its layernorm takes no residual in fp64");
    EXPECT_EQ(refusal("layernorm", "r8w72"), "too wide");
    EXPECT_EQ(refusal("layernorm", "r8w64"), "");
}

TEST(UserKernel, ComputesOnRequestOnlyUnlessItSaysOtherwise) {
    register_kernel(norm_kernel("asked"));
    UserKernel<LayerNorm> eager = norm_kernel("eager");
    eager.by_default = true;
    eager.unsupported = [](const LayerNorm& op, const Step&, Precision) -> std::string {
        return op.width == 72 ? "" : "no";
    };
    register_kernel(eager);
    EXPECT_TRUE(made("asked")->on_request_only);
    EXPECT_FALSE(made("eager")->on_request_only);

    const Model model = model_of_squares();
    const auto providers = make_providers(BackendKind::cpu, {});
    for (const AssignedStep& step : assign_steps(model, Precision::fp64, providers, {}, 1))
        EXPECT_NE(step.provider->name, "asked");
    int norms = 0;
    for (const AssignedStep& step : assign_steps(model, Precision::fp64, providers, {{"layernorm", "asked"}}, 1)) {
        if (!step.step.head_op().is<LayerNorm>()) continue;
        EXPECT_EQ(step.provider->name, "asked");
        EXPECT_EQ(step.step.ops.size(), 1u) << "what it does not fuse is computed apart";
        ++norms;
    }
    EXPECT_EQ(norms, 5);
}

TEST(UserKernel, GetsItsWorkspaceAndIsVerified) {
    register_kernel(norm_kernel("verified"));
    const auto device = make_cpu_device();
    const Step step = Step::of(LayerNorm{64, 64, 1e-5});
    const auto computation = made("verified")->make(step, Precision::fp64);
    EXPECT_EQ(computation->workspace_bytes(), workspace_elements * sizeof(double));
    const VerifiedStep verified =
        verify_step({&step, computation.get(), "verified", "ln_1"}, Precision::fp64, *device, 1);
    EXPECT_EQ(verified.elements_checked, 64 * 64);
    EXPECT_EQ(verified.implementation, "verified");
}

TEST(UserKernel, WhatItThrowsNamesTheStepAndKbenchsOwnErrorsPass) {
    UserKernel<LayerNorm> broken = norm_kernel("broken");
    broken.run = [](const LayerNorm& op, const KernelCall&) {
        if (op.rows == 1) throw DeviceError("no device");
        throw std::runtime_error("too small a grid");
    };
    register_kernel(broken);
    const auto run = [](std::int64_t rows) {
        made("broken")->make(Step::of(LayerNorm{rows, 64, 1e-5}), Precision::fp64)->run({{}, nullptr, nullptr});
    };
    EXPECT_EQ(error_line<MeasurementError>([&] { run(8); }), "layernorm r8w64 by broken, fp64: too small a grid");
    EXPECT_EQ(error_line<DeviceError>([&] { run(1); }), "no device");
}

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(UserKernel, TheDocumentationHasTheFilesOfTheExample) {
    const std::filesystem::path root = KBENCH_SOURCE_DIR, page = root / "docs/user-kernel.md";
    // A comment names the file, the block below it is the file's text.
    const std::regex block(R"(<!-- (examples/\S+) -->\n```(\w+)\n)");
    const std::string old = content(page);
    std::string text = old;
    std::set<std::string> shown;
    for (std::sregex_iterator match(old.begin(), old.end(), block), end; match != end; ++match) {
        const std::string marker = match->str(), file = (*match)[1];
        const std::size_t start = text.find(marker) + marker.size();
        ASSERT_FALSE(content(root / file).empty()) << file;
        text.replace(start, text.find("```\n", start) - start, content(root / file));
        shown.insert(file);
    }
    for (const auto& entry : std::filesystem::directory_iterator(root / "examples/my_kernel"))
        if (entry.path().extension() != ".md") {
            EXPECT_TRUE(shown.contains(entry.path().lexically_relative(root).string())) << entry.path();
        }
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(page) << text;
    EXPECT_EQ(content(page), text) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

}  // namespace
}  // namespace kbench
