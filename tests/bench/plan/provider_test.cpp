// Who computes what, and why not: the one function that decides, and the tables of the built-in providers.
#include "bench/plan/provider.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "bench/plan/fuse.h"
#include "kbench/error.h"
#include "models/backward.h"
#include "models/deepspeech2.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/problem.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;

/// A computation that says which row it is of.
std::unique_ptr<Computation> named(std::string name) {
    return make_computation(std::move(name), [](const Call&) {});
}

/// Layer norm up to width 64, in fp32 and fp64, with a residual; GEMM with an epilogue in fp16 and without in fp64.
Provider sample() {
    const auto too_wide = [](const LayerNorm& op, const Step&, Precision) {
        return op.width > 64 ? "width over 64" : "";
    };
    return {.name = "sample",
            .ops = {Computes<LayerNorm>{.precisions = {Precision::fp32, Precision::fp64},
                                        .absorbs = {{"residual"}},
                                        .why_not = too_wide,
                                        .make = [](const LayerNorm&, const Step&, Precision) { return named("norm"); }},
                    Computes<Gemm>{.precisions = {Precision::fp16},
                                   .absorbs = {{"bias"}, {"bias", "gelu"}},
                                   .make = [](const Gemm&, const Step&, Precision) { return named("half gemm"); }},
                    Computes<Gemm>{.precisions = {Precision::fp64},
                                   .make = [](const Gemm&, const Step&, Precision) { return named("double gemm"); }}}};
}

/// Runs a kernel called after the sum's length, or after what it is told.
Provider by_length(std::string text) {
    return {.name = "by_length", .ops = {Computes<Gemm>{.make = [text](const Gemm& op, const Step&, Precision) {
                                     return named(text.empty() ? "k " + std::to_string(op.k) : text);
                                 }}}};
}

TEST(Resized, IsWhatTheProviderMakesWhereThatIsTheSameImplementation) {
    const Provider provider = by_length("one kernel for all");
    const auto own = provider.make(parse_problem("gemm", "m8n8k8"), Precision::fp32);
    const auto larger = resized(*own, provider, parse_problem("gemm", "m8n8k16"), Precision::fp32);
    ASSERT_NE(larger, nullptr);
    EXPECT_EQ(larger->implementation(), "one kernel for all");
}

TEST(Resized, IsRefusedWhereAnotherImplementationWouldRun) {
    const Provider provider = by_length("");
    const auto own = provider.make(parse_problem("gemm", "m8n8k8"), Precision::fp32);
    EXPECT_EQ(
        error_line<Unsupported>([&] { resized(*own, provider, parse_problem("gemm", "m8n8k16"), Precision::fp32); }),
        "gemm m8n8k16 runs k 16, not k 8");
    EXPECT_THAT(
        error_line<Unsupported>([&] { resized(*own, sample(), parse_problem("gemm", "m8n8k16"), Precision::fp32); }),
        HasSubstr("has no gemm in fp32"));
}

/// Keeps its algorithm itself, for steps of which the provider would make another.
class Pinned final : public Computation {
  public:
    std::string implementation() const override { return "pinned"; }
    std::unique_ptr<Computation> resized(const Step& grown, Precision) const override {
        if (grown.as<Gemm>().k > 100) throw Unsupported("too long for the algorithm");
        return std::make_unique<Pinned>();
    }
    void run(const Call&) const override {}
};

TEST(Resized, KeepsTheAlgorithmOfAComputationThatCan) {
    const Provider provider = by_length("");
    EXPECT_EQ(resized(Pinned(), provider, parse_problem("gemm", "m8n8k16"), Precision::fp32)->implementation(),
              "pinned");
    EXPECT_EQ(error_line<Unsupported>(
                  [&] { resized(Pinned(), provider, parse_problem("gemm", "m8n8k101"), Precision::fp32); }),
              "too long for the algorithm");
}

std::string refusal(const Provider& provider, const Step& step, Precision precision) {
    const std::string why = provider.unsupported(step, precision);
    if (!why.empty()) {
        EXPECT_EQ(error_line<Unsupported>([&] { provider.make(step, precision); }), why) << "nothing is made either";
    }
    return why;
}

TEST(Provider, RefusesByTheNearestOfWhatItsRowsSay) {
    const Provider provider = sample();
    EXPECT_EQ(refusal(provider, parse_problem("softmax", "r8w8"), Precision::fp32), "has no softmax");
    EXPECT_EQ(refusal(provider, Step::of(LayerNorm{8, 64}, Direction::bwd), Precision::fp32),
              "has no layernorm in direction bwd");
    EXPECT_EQ(refusal(provider, parse_problem("layernorm", "r8w64"), Precision::fp16), "has no layernorm in fp16");
    EXPECT_EQ(refusal(provider, parse_problem("layernorm", "r8w64+bias+residual"), Precision::fp32),
              "its layernorm takes no bias+residual in fp32");
    EXPECT_EQ(refusal(provider, parse_problem("layernorm", "r8w72"), Precision::fp32), "width over 64");
    EXPECT_EQ(refusal(provider, parse_problem("layernorm", "r8w72+residual"), Precision::fp32), "width over 64");
    EXPECT_EQ(refusal(provider, parse_problem("layernorm", "r8w72"), Precision::fp16), "has no layernorm in fp16")
        << "what a row says itself comes last";
    for (const char* shape : {"r8w64", "r8w64+residual"})
        EXPECT_EQ(refusal(provider, parse_problem("layernorm", shape), Precision::fp64), "") << shape;
}

TEST(Provider, OfSeveralRowsTheOneThatComesNearestSpeaks) {
    Provider provider = sample();
    for (int order = 0; order < 2; ++order) {
        EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8+bias"), Precision::fp16), "");
        EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8+bias"), Precision::fp64),
                  "its gemm takes no bias in fp64");
        EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8+bias+residual"), Precision::fp16),
                  "its gemm takes no bias+residual in fp16");
        EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8"), Precision::bf16), "has no gemm in bf16");
        EXPECT_EQ(refusal(provider, Step::of(Gemm{8, 8, 8}, Direction::wgrad), Precision::fp64),
                  "has no gemm in direction wgrad");
        std::ranges::reverse(provider.ops);
    }
    const Step gemm = parse_problem("gemm", "m8n8k8");
    EXPECT_EQ(provider.make(gemm, Precision::fp16)->implementation(), "half gemm");
    EXPECT_EQ(provider.make(gemm, Precision::fp64)->implementation(), "double gemm");
}

TEST(Provider, WhatItLacksAltogetherIsSaidOfTheKindsThatItHas) {
    Provider provider = sample();
    provider.lacks = [](Precision precision) { return precision == Precision::fp16 ? "this chip has no fp16" : ""; };
    EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8"), Precision::fp16), "this chip has no fp16");
    EXPECT_EQ(refusal(provider, parse_problem("softmax", "r8w8"), Precision::fp16), "has no softmax");
    EXPECT_EQ(refusal(provider, parse_problem("gemm", "m8n8k8"), Precision::fp64), "");
}

TEST(Provider, ARowThatAbsorbsAnythingStillHasItsSay) {
    Provider provider{.name = "sample", .ops = {}};
    provider.ops.push_back(
        {.kind = &op_kind<LayerNorm>(),
         .absorbs_anything = true,
         .why_not = [](const Step& step, Precision) { return step.keeps_intermediates() ? "keeps no sum" : ""; },
         .make = [](const Step&, Precision) { return named("norm"); }});
    Step step = parse_problem("layernorm", "r8w64+bias+residual");
    EXPECT_EQ(refusal(provider, step, Precision::bf16), "");
    step.kept = {1};
    EXPECT_EQ(refusal(provider, step, Precision::bf16), "keeps no sum");
}

TEST(Provider, LeavesNothingBehindItsHeadUnlessItsRowSaysSo) {
    Provider provider = sample();
    Step step = parse_problem("gemm", "m8n8k8+bias");
    step.kept = {0};
    EXPECT_EQ(refusal(provider, step, Precision::fp16), "its gemm cannot also store the intermediate result");
    for (ProviderOp& row : provider.ops) row.leaves_results = true;
    EXPECT_EQ(refusal(provider, step, Precision::fp16), "");
}

TEST(CpuProviders, ComputeNoGradientsAlongWithAProductUnlessAsked) {
    for (const auto& provider : make_providers(BackendKind::cpu, {}))
        for (const Precision precision : all_precisions) {
            if (provider->on_request_only) continue;
            EXPECT_NE(provider->unsupported(parse_problem("gemm", "m8n8k8+bias", Direction::wgrad), precision), "");
            EXPECT_NE(provider->unsupported(parse_problem("gemm", "m8n8k8+gelu", Direction::dgrad), precision), "");
            Step kept = parse_problem("gemm", "m8n8k8+bias+gelu");
            kept.kept = {1};
            EXPECT_NE(provider->unsupported(kept, precision), "");
        }
}

/// The activations that a provider computes behind a product and its bias, or whose slope behind dgrad.
std::set<std::string_view> activations_behind_a_product(const Provider& provider, Precision precision,
                                                        Direction direction) {
    std::set<std::string_view> taken;
    for (const ActivationFacts& facts : activation_table) {
        const std::string shape = direction == Direction::fwd ? "m64n64k64+bias+" : "m64n64k64+";
        const Step step = parse_problem("gemm", shape + std::string(facts.kind), direction);
        if (provider.unsupported(step, precision).empty()) taken.insert(facts.kind);
    }
    return taken;
}

TEST(CpuProviders, OnlyOneDnnHasActivationsBehindAProductAndHasThemAll) {
    std::set<std::string_view> all, none;
    for (const ActivationFacts& facts : activation_table) all.insert(facts.kind);
    for (const auto& provider : make_providers(BackendKind::cpu, {})) {
        if (provider->on_request_only) continue;
        EXPECT_EQ(activations_behind_a_product(*provider, Precision::fp32, Direction::fwd),
                  provider->name == "onednn" ? all : none)
            << provider->name;
        EXPECT_EQ(activations_behind_a_product(*provider, Precision::fp32, Direction::dgrad), none) << provider->name;
    }
}

TEST(CpuProviders, ComputeTheGradientsOfAGemmWhereTheyComputeIt) {
    int with_gemm = 0;
    for (const auto& provider : make_providers(BackendKind::cpu, {}))
        for (const Precision precision : all_precisions) {
            if (!provider->unsupported(Step::of(Gemm{8, 8, 8}), precision).empty()) continue;
            for (const Direction direction : {Direction::dgrad, Direction::wgrad})
                EXPECT_EQ(refusal(*provider, Step::of(Gemm{8, 8, 8}, direction), precision), "")
                    << provider->name << " " << name(precision) << " " << name(direction);
            EXPECT_EQ(refusal(*provider, Step::of(Gemm{8, 8, 8}, Direction::bwd), precision),
                      "has no gemm in direction bwd");
            ++with_gemm;
        }
    EXPECT_GE(with_gemm, 3) << "onednn, blas and reference compute fp32, fp64 or both";
}

TEST(CpuProviders, OneDnnComputesAttentionsBackwardWhereItComputesItsForwardAndNativeElsewhere) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const Attention attention{{1, 2, 64, 64}, 0.125};
    const Step forward = Step::of(attention), backward = Step::of(attention, Direction::bwd);
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp32, Precision::fp64}) {
        const auto takes = [&](const Step& step) {
            return [&, precision](const auto& provider) { return provider->unsupported(step, precision).empty(); };
        };
        const bool onednn = std::ranges::any_of(
            providers, [&](const auto& provider) { return provider->name == "onednn" && takes(forward)(provider); });
        const auto first = std::ranges::find_if(providers, takes(backward));
        ASSERT_NE(first, providers.end()) << name(precision);
        EXPECT_EQ((*first)->name, onednn ? "onednn" : "native") << name(precision);
        EXPECT_EQ((*first)->make(backward, precision)->implementation() == "cpu::attention_gradient", !onednn);
        EXPECT_TRUE(onednn || precision != Precision::fp32) << "it has fp32 on every CPU";
    }
}

/// Who computes `step` on a CPU unless --provider says otherwise.
const Provider& usual(const Providers& providers, const Step& step, Precision precision) {
    return **std::ranges::find_if(providers, [&](const auto& provider) {
        return provider->unsupported(step, precision).empty() && !provider->takes_on_request_only(step, precision);
    });
}

void expect_packs(const Provider& provider, const Step& step, Precision precision,
                  const std::vector<std::size_t>& packed) {
    const auto computation = provider.make(step, precision);
    for (std::size_t i = 0; i < operands(step, precision).size(); ++i)
        EXPECT_EQ(computation->packed_bytes(i).has_value(), std::ranges::find(packed, i) != packed.end()) << i;
}

TEST(CpuProviders, OneDnnTakesConvolutionsWhereItHasThePrecisionAndPacksWeightsThatStayAsTheyAre) {
    const auto providers = make_providers(BackendKind::cpu, {});
    Step step = parse_problem("conv2d", "n2c3h9w20k4r3s5b");
    const Provider& provider = usual(providers, step, Precision::fp32);
    EXPECT_EQ(provider.name, "onednn");
    expect_packs(provider, step, Precision::fp32, {1});
    EXPECT_NE(usual(providers, step, Precision::fp64).name, "onednn");
    step.weights_change = true;
    EXPECT_EQ(&usual(providers, step, Precision::fp32), &provider);
    expect_packs(provider, step, Precision::fp32, {});
    for (const Direction direction : {Direction::dgrad, Direction::wgrad}) {
        const Step backward = parse_problem("conv2d", "n2c3h9w20k4r3s5ba", direction);
        EXPECT_EQ(&usual(providers, backward, Precision::fp32), &provider);
        expect_packs(provider, backward, Precision::fp32, {});
        EXPECT_EQ(usual(providers, backward, Precision::fp64).name, "native");
    }
}

TEST(CpuProviders, RecurrentLayersAreOneDnnsIn16BitsAndOnRequestInFp32) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const Provider& onednn = **std::ranges::find(providers, "onednn", [](const auto& p) { return p->name; });
    for (const char* op : {"lstm", "gru", "rnn"}) {
        SCOPED_TRACE(op);
        for (const Direction direction : {Direction::fwd, Direction::bwd}) {
            Step step = parse_problem(op, "t6n2h8s", direction);
            for (const bool weights_change : {false, true}) {
                step.weights_change = weights_change;
                const std::vector<std::size_t> packed =
                    weights_change ? std::vector<std::size_t>{} : std::vector<std::size_t>{2, 3};
                for (const Precision precision : {Precision::fp16, Precision::bf16})
                    if (onednn.lacks(precision).empty()) {
                        EXPECT_EQ(&usual(providers, step, precision), &onednn);
                    }
                EXPECT_EQ(refusal(onednn, step, Precision::fp32), "");
                expect_packs(onednn, step, Precision::fp32, packed);
                for (const Precision precision : {Precision::fp32, Precision::fp64}) {
                    const Provider& provider = usual(providers, step, precision);
                    EXPECT_EQ(provider.name, "native");
                    expect_packs(provider, step, precision, packed);
                }
            }
        }
    }
}

TEST(CpuProviders, GradientsOfRecurrentWeightsAreOneDnnsWhereItHasThePrecision) {
    const auto providers = make_providers(BackendKind::cpu, {});
    for (const char* op : {"lstm", "gru", "rnn"}) {
        const Step step = parse_problem(op, "t6n2h8a", Direction::wgrad);
        EXPECT_EQ(usual(providers, step, Precision::fp32).name, "onednn") << op;
        EXPECT_EQ(usual(providers, step, Precision::fp64).name, "native") << op;
    }
}

TEST(CpuProviders, SayWhatTheyDoNotTake) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const auto why = [&](std::string_view provider, const Step& step, Precision precision) {
        const auto found =
            std::ranges::find(providers, provider, [](const auto& p) { return std::string_view(p->name); });
        return refusal(**found, step, precision);
    };
    EXPECT_EQ(why("blas", parse_problem("gemm", "m8n8k8"), Precision::fp16), "CBLAS has no fp16");
    EXPECT_EQ(why("blas", parse_problem("gemm", "m8n8k8+bias"), Precision::fp64), "its gemm takes no bias in fp64");
    EXPECT_EQ(why("blas", parse_problem("residual", "r8w8"), Precision::fp64), "has no residual");
    EXPECT_EQ(why("native", parse_problem("layernorm", "r8w8+bias+residual"), Precision::fp32),
              "its layernorm takes no bias+residual in fp32");
    EXPECT_EQ(why("native", parse_problem("softmax", "r8w8"), Precision::tf32), "tf32 is a format of GPU tensor cores");
    EXPECT_EQ(why("onednn", parse_problem("layernorm", "r8w8+residual"), Precision::fp32),
              "its layernorm takes no residual in fp32");
    Step padded = parse_problem("gemm", "m8n7k8t+bias");
    padded.padded_columns = 8;
    EXPECT_EQ(why("onednn", padded, Precision::fp32), "no epilogue on padded columns");
    padded.ops.pop_back();
    EXPECT_EQ(why("onednn", padded, Precision::fp32), "");
    EXPECT_EQ(why("blas", padded, Precision::fp64), "no padded columns");
}

#ifdef KBENCH_HAVE_CUDA

/// With more rows than `gemv` takes.
Model small_model_of(AttentionKind attention) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    return make_gpt2(config, 2, 16, attention);
}

/// Computations that can be made where no GPU is, of those that the models' steps need; the others ask the device.
TEST(CudaProviders, FindWhatStepsReadAndWriteByName) {
    std::vector<Model> models;
    for (const AttentionKind attention : {AttentionKind::fused, AttentionKind::unfused})
        models.push_back(small_model_of(attention));
    models.push_back(with_backward(small_model_of(AttentionKind::fused), {}));
    models.push_back(
        with_backward(small_model_of(AttentionKind::fused), {.adamw = true, .norm = true, .accumulate = true}));
    for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn}) {
        const DeepSpeech2Config config{"tiny", cell, 64, 2, 8};
        models.push_back(make_deepspeech2(config, 2, 100));
        models.push_back(with_backward(models.back(), {}));
    }
    std::set<std::string> made;
    const auto providers = make_providers(BackendKind::cuda, {});
    for (const Model& model : models)
        for (const Precision precision : all_precisions)
            for (const AssignedStep& s : assign_steps(model, precision, providers, {}, 64)) {
                const std::string text = fmt::format("{} {}", name(s.step.direction), op_name(s.step));
                try {
                    s.provider->make(s.step, precision);
                    made.insert(text);
                } catch (const std::logic_error& mistake) {
                    ADD_FAILURE() << text << " " << shape_text(s.step) << ": " << mistake.what();
                } catch (const Error&) {  // there is no device
                }
            }
    EXPECT_THAT(made, IsSupersetOf({"fwd embedding", "fwd layernorm", "bwd residual", "bwd batchnorm", "bwd ctc"}));
}

TEST(CudaProviders, ModelsRunTheirProductsOnCublasLtUnlessAskedOtherwise) {
    const auto providers = make_providers(BackendKind::cuda, {});
    for (const AttentionKind attention : {AttentionKind::fused, AttentionKind::unfused})
        for (const Precision precision : all_precisions) {
            const Model model = small_model_of(attention);
            for (const AssignedStep& s : assign_steps(model, precision, providers, {}, 64)) {
                const Op& op = s.step.head_op();
                const bool product = op.is<Gemm>() || op.is<AttentionScores>() || op.is<AttentionContext>();
                EXPECT_EQ(s.provider->name, product ? "cublaslt" : "native")
                    << name(precision) << " " << op_name(s.step) << " " << shape_text(s.step);
            }
        }
}

TEST(CudaProviders, ProductsOfFewRowsRunOnGemvWithAllThatFollowsThem) {
    const auto providers = make_providers(BackendKind::cuda, {});
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;  // padded to 128
    const auto products_of = [&](Precision precision, std::int64_t batch, const ProviderChoice& choice) {
        std::set<std::string> fused;
        const Model model = make_gpt2_decode(config, batch, 7);
        for (const AssignedStep& s : assign_steps(model, precision, providers, choice, 64)) {
            if (!s.step.head_op().is<Gemm>()) continue;
            const std::string text = shape_text(s.step);
            fused.insert(s.provider->name + text.substr(std::min(text.find('+'), text.size())));
        }
        return fused;
    };
    const std::set<std::string> all{"gemv+pad28", "gemv+bias", "gemv+bias+gelu", "gemv+bias+residual"};
    for (const Precision precision : all_precisions) {
        const std::int64_t usual = precision == Precision::fp32 ? 1 : 4;
        EXPECT_EQ(products_of(precision, usual, {}), all) << name(precision);
        EXPECT_EQ(products_of(precision, 16, {{"gemm", "gemv"}}), all) << name(precision);
        for (const std::string& product : products_of(precision, usual + 1, {}))
            EXPECT_TRUE(product.starts_with("cublaslt")) << product;
    }
    EXPECT_THROW(products_of(Precision::bf16, 17, {{"gemm", "gemv"}}), Unsupported);
}

/// It keeps a copy of a weight that lies as [k, n].
TEST(CudaProviders, GemvTakesNoWeightsThatChangeUnlessItReadsThemAsTheyLie) {
    const auto providers = make_providers(BackendKind::cuda, {});
    Step step = parse_problem("gemm", "m4n64k64"), as_it_lies = parse_problem("gemm", "m4n64k64t");
    EXPECT_EQ(providers.front()->unsupported(step, Precision::bf16), "");
    step.weights_change = as_it_lies.weights_change = true;
    EXPECT_THAT(providers.front()->unsupported(step, Precision::bf16), testing::HasSubstr("must not change"));
    EXPECT_EQ(providers.front()->unsupported(as_it_lies, Precision::bf16), "");
}

/// Products that absorb something, in training: "fwd +bias+gelu, kept", each once.
std::set<std::string> fused_in_training(Precision precision, const TrainingOptions& options = {},
                                        const ProviderContext& context = {}, const ProviderChoice& choice = {}) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    const Model model = with_backward(make_gpt2(config, 2, 64, AttentionKind::fused), options);
    const auto providers = make_providers(BackendKind::cuda, context);
    std::set<std::string> fused;
    for (const AssignedStep& s : assign_steps(model, precision, providers, choice, 64)) {
        if (!s.step.head_op().is<Gemm>() || s.step.ops.size() == 1) continue;
        const std::string text = shape_text(s.step);
        fused.insert(std::string(name(s.step.direction)) + " " + text.substr(text.find('+')) +
                     (s.step.keeps_results() ? ", kept" : ""));
        EXPECT_EQ(s.provider->name, "cublaslt");
    }
    return fused;
}

TEST(CudaProviders, NoEpilogueTakesAnActivationThatItDoesNotCompute) {
    const std::set<std::string_view> tanh_forms{"gelu", "gelu_fast"}, none;
    for (const auto& provider : make_providers(BackendKind::cuda, {}))
        for (const Precision precision : {Precision::bf16, Precision::tf32, Precision::fp32, Precision::fp64}) {
            SCOPED_TRACE(testing::Message() << provider->name << " " << name(precision));
            const bool has_epilogue = provider->name == "cublaslt" && precision != Precision::fp64;
            EXPECT_EQ(activations_behind_a_product(*provider, precision, Direction::fwd),
                      has_epilogue ? tanh_forms : none);
            for (const std::string_view kind : activations_behind_a_product(*provider, precision, Direction::dgrad))
                EXPECT_TRUE(has_epilogue && tanh_forms.contains(kind)) << kind;
        }
}

TEST(CudaProviders, TrainingsProductsComputeBiasesAndGeluOfBothDirections) {
    const std::set<std::string> usual{"fwd +bias", "fwd +bias+gelu, kept", "dgrad +gelu"};
    std::set<std::string> all = usual;
    all.insert("wgrad +bias");
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
        EXPECT_EQ(fused_in_training(precision), usual) << name(precision);
        EXPECT_EQ(fused_in_training(precision, {.recompute = true}), usual) << name(precision);
        EXPECT_EQ(fused_in_training(precision, {}, {}, {{"gemm", "cublaslt"}}), all) << name(precision);
    }
    for (const Precision precision : {Precision::tf32, Precision::fp32})
        EXPECT_EQ(fused_in_training(precision), std::set<std::string>{"fwd +bias"}) << name(precision);
    EXPECT_EQ(fused_in_training(Precision::fp64), std::set<std::string>{});
}

TEST(CudaProviders, ABiassGradientIsApartWhereItIsAddedOrMustBeSummedInOneOrder) {
    const std::set<std::string> without{"fwd +bias", "fwd +bias+gelu, kept", "dgrad +gelu"};
    const ProviderChoice asked{{"gemm", "cublaslt"}};
    EXPECT_EQ(fused_in_training(Precision::bf16, {.accumulate = true}, {}, asked), without);
    EXPECT_EQ(fused_in_training(Precision::bf16, {}, {.deterministic = true}, asked), without);
}

TEST(CudaProviders, EpiloguesThatCublasLtHasNotAreStepsOfTheirOwn) {
    const auto providers = make_providers(BackendKind::cuda, {});
    const Provider& cublaslt = **std::ranges::find(providers, "cublaslt", &Provider::name);
    Step kept = parse_problem("gemm", "m16n20k64+bias+gelu");
    kept.kept = {1};
    EXPECT_THAT(cublaslt.unsupported(kept, Precision::bf16), testing::HasSubstr("a multiple of 8 elements, not of 20"));
    kept = parse_problem("gemm", "m16n64k20+bias+gelu");
    kept.kept = {1};
    EXPECT_THAT(cublaslt.unsupported(kept, Precision::bf16), testing::HasSubstr("a multiple of 8 elements"));
    const Step dgrad = parse_problem("gemm", "m16n64k20+gelu", Direction::dgrad);
    EXPECT_THAT(cublaslt.unsupported(dgrad, Precision::bf16), testing::HasSubstr("not of 20"));
    const Step transposed = parse_problem("gemm", "m16n64k64t+bias", Direction::wgrad);
    EXPECT_NE(cublaslt.unsupported(transposed, Precision::bf16), "");
    kept.kept = {0};
    EXPECT_NE(cublaslt.unsupported(kept, Precision::bf16), "") << "the product without its bias";
    EXPECT_EQ(cublaslt.unsupported(parse_problem("gemm", "m16n20k64", Direction::wgrad), Precision::bf16), "");
}

TEST(CudaProviders, NativeComputesPlainProductsAndLeavesTheirEpiloguesToOthers) {
    const auto providers = make_providers(BackendKind::cuda, {});
    const Model model = small_model_of(AttentionKind::fused);
    for (const Precision precision : all_precisions)
        for (const AssignedStep& s : assign_steps(model, precision, providers, {{"*", "native"}}, 64)) {
            EXPECT_EQ(s.provider->name, "native");
            EXPECT_FALSE(s.step.head_op().is<Gemm>() && s.step.ops.size() > 1) << shape_text(s.step);
        }
}

TEST(CudaProviders, NativeComputesAConvolutionOfSpectrogramsWithAllThatFollowsInOneStep) {
    const auto providers = make_providers(BackendKind::cuda, {});
    Model model = make_deepspeech2({.name = "tiny", .hidden_size = 8}, 3, 61);
    model.ops.erase(model.ops.begin() + 12, model.ops.end());  // behind both convolutions
    model.outputs = model.ops.back().outputs;
    for (const Precision precision : all_precisions) {
        const auto steps = assign_steps(model, precision, providers, {}, 64);
        ASSERT_EQ(steps.size(), 2u) << name(precision);
        for (const AssignedStep& s : steps) {
            EXPECT_EQ(s.provider->name, "native");
            EXPECT_THAT(shape_text(s.step), testing::EndsWith("+time_mask+batchnorm+time_mask+hardtanh+time_mask"));
            EXPECT_EQ(s.tensors.size(), 3u + 1 + 4 + 1 + 1 + 1);
        }
    }
    const Provider& native = **std::ranges::find_if(providers, [](const auto& p) { return p->name == "native"; });
    Step step = assign_steps(model, Precision::fp16, providers, {}, 64).at(0).step;
    Step by_column = step, other_mask = step;
    by_column.ops[2] = BatchNorm{step.ops[2].get_if<BatchNorm>()->rows, 31};
    other_mask.ops[5] = TimeMask{1, 3 * 32 * 81, 31};
    EXPECT_THAT(native.unsupported(by_column, Precision::fp16), testing::HasSubstr("by filter"));
    EXPECT_THAT(native.unsupported(other_mask, Precision::fp16), testing::HasSubstr("by image"));
}

TEST(CudaProviders, RungsOfTheGemmLadderComputeOnlyWhatTheyAreAskedFor) {
    int rungs = 0;
    for (const auto& provider : make_providers(BackendKind::cuda, {})) {
        const bool rung = provider->name.starts_with("native_");
        if (provider->name == "onednn") continue;  // user_kernel_test.cpp adds it and cannot take it back
        EXPECT_EQ(provider->on_request_only, rung || provider->name == "cudnn") << provider->name;
        if (!rung) continue;
        ++rungs;
        const Step plain = parse_problem("gemm", "m64n64k64"), with_bias = parse_problem("gemm", "m64n64k64+bias");
        EXPECT_EQ(provider->unsupported(with_bias, Precision::fp16), "its gemm takes no bias in fp16");
        EXPECT_EQ(provider->unsupported(plain, Precision::fp16), "");
        EXPECT_EQ(provider->unsupported(plain, Precision::tf32).empty(), provider->name == "native_mma");
        EXPECT_EQ(provider->unsupported(plain, Precision::fp32).empty(), provider->name != "native_mma");
    }
    EXPECT_EQ(rungs, 5);
}

#endif

}  // namespace
}  // namespace kbench
