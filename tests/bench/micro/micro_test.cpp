// Microbenchmarks: which there are, how often they run, what a verified and a wrong one leave behind, and their rows.
#include "bench/micro/benchmarks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "bench/command/micro_options.h"
#include "bench/micro/columns.h"
#include "bench/micro/reporters.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "kbench/kernel.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"
#include "tests/analysis/golden.h"
#include "tests/bench/refusal.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

AskedProblem problem(const std::string& op, const std::string& shape) { return {op, shape, parse_problem(op, shape)}; }

std::vector<std::string> names_of(std::span<const MicroCase> cases) {
    std::vector<std::string> names;
    for (const MicroCase& micro : cases) names.push_back(micro.name());
    return names;
}

constexpr Precision fp32_only[] = {Precision::fp32};
constexpr CacheState hot_only[] = {CacheState::hot};

/// Doubles instead of adding: what a wrong kernel does.
const bool wrong_is_registered = register_kernel<ResidualAdd>({
    .name = "wrong",
    .backend = BackendKind::cpu,
    .what = "adds the wrong array",
    .precisions = {Precision::fp32},
    .run =
        [](const ResidualAdd& add, const KernelCall& call) {
            OperandCursor operands = call.operands;
            const auto* x = operands.next<const float>();
            operands.next();
            auto* out = operands.next<float>();
            for (std::int64_t i = 0; i < add.rows * add.width; ++i) out[i] = x[i] + x[i];
        },
});

// ---- which benchmarks there are ------------------------------------------------------------------------------------

TEST(MicroCases, AreNamedByOpProviderPrecisionDirectionShapeAndCache) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const std::vector<AskedProblem> problems{problem("gemm", "m8n8k8")};
    const std::vector<std::string> chosen{"onednn"};
    const Precision precisions[] = {Precision::fp32, Precision::fp64};
    const CacheState caches[] = {CacheState::cold, CacheState::hot};
    EXPECT_THAT(names_of(make_cases(problems, providers, chosen, precisions, caches)),
                ElementsAre("gemm/onednn/fp32/fwd/m8n8k8/cold", "gemm/onednn/fp32/fwd/m8n8k8/hot",
                            "gemm/onednn/fp64/fwd/m8n8k8/cold", "gemm/onednn/fp64/fwd/m8n8k8/hot"))
        << "what a provider that was asked for cannot do is a row too";
}

TEST(MicroCases, WithoutAChoiceAreThoseOfProvidersThatComputeTheOp) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const std::vector<AskedProblem> problems{problem("gemm", "m8n8k8"), problem("residual", "r8w8")};
    const std::vector<std::string> names = names_of(make_cases(problems, providers, {}, fp32_only, hot_only));
    EXPECT_THAT(names, Contains("gemm/onednn/fp32/fwd/m8n8k8/hot"));
    EXPECT_THAT(names, Contains("gemm/blas/fp32/fwd/m8n8k8/hot"));
    EXPECT_THAT(names, Contains("residual/native/fp32/fwd/r8w8/hot"));
    EXPECT_THAT(names, Not(Contains(HasSubstr("residual/blas")))) << "which has no such thing in any precision";
    EXPECT_THAT(names, Not(Contains(HasSubstr("/reference/")))) << "slow, on request only";
    EXPECT_THAT(names, Not(Contains(HasSubstr("/wrong/"))));
}

TEST(MicroCases, OfAnUnknownProviderAreRefused) {
    const std::vector<std::string> chosen{"cublast"};
    EXPECT_THAT(refusal_of([&] { make_cases({}, make_providers(BackendKind::cpu, {}), chosen, fp32_only, hot_only); }),
                HasSubstr("--provider 'cublast': this backend has no such provider; must be one of onednn, "));
}

TEST(MicroCases, AreFilteredByTheNamesThatAreShown) {
    const auto providers = make_providers(BackendKind::cpu, {});
    const std::vector<AskedProblem> problems{problem("gemm", "m8n8k8"), problem("residual", "r8w8")};
    const auto cases = make_cases(problems, providers, {}, fp32_only, hot_only);
    const auto filtered = [&](const std::string& filter) {
        std::vector<std::string> arguments{"kbench", "--benchmark_filter=" + filter, "--benchmark_repetitions=2"};
        const std::vector<std::string> names = names_of(filter_cases(cases, arguments));
        EXPECT_THAT(arguments, ElementsAre("kbench", "--benchmark_repetitions=2"));
        return names;
    };
    EXPECT_THAT(filtered("residual/.*/hot$"), ElementsAre("residual/native/fp32/fwd/r8w8/hot"));
    EXPECT_THAT(filtered("-gemm"), ElementsAre("residual/native/fp32/fwd/r8w8/hot"));
    EXPECT_EQ(filtered("all").size(), cases.size());
    EXPECT_THAT(refusal_of([&] { filtered("nothing"); }), HasSubstr("matches none of"));
    EXPECT_THAT(refusal_of([&] { filtered("("); }), HasSubstr("no regular expression"));
}

TEST(MicroProblems, ComeFromAFileWithComments) {
    const auto problems = parse_problems("# shapes\n\ngemm m1n2k3  # small\nlayernorm r4w5\n", "file");
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0].op, "gemm");
    EXPECT_EQ(problems[1].shape, "r4w5");
    EXPECT_EQ(problems[1].problem, parse_problem("layernorm", "r4w5"));
    EXPECT_THAT(refusal_of([] { parse_problems("gemm m1n2k3\ngemm m1n2\n", "file"); }),
                HasSubstr("file line 2: shape 'm1n2'"));
    EXPECT_EQ(parse_problems("gemm m1n2k3 wgrad\n", "file").front().problem,
              parse_problem("gemm", "m1n2k3", Direction::wgrad));
    EXPECT_THAT(refusal_of([] { parse_problems("layernorm r4w5 wgrad\n", "file"); }), HasSubstr("has no wgrad"));
    EXPECT_THAT(refusal_of([] { parse_problems("gemm m1n2k3 wgrad dgrad\n", "file"); }),
                HasSubstr("may name a direction"));
    EXPECT_THAT(refusal_of([] { parse_problems("gemm\n", "file"); }), HasSubstr("file line 1"));
    EXPECT_THAT(refusal_of([] { parse_problems("gemm m1n2k3 fp16\n", "file"); }), HasSubstr("an op and a shape"));
    EXPECT_THAT(refusal_of([] { parse_problems("# nothing\n", "file"); }), HasSubstr("holds no problem"));
}

TEST(MicroProblems, OfDeepBenchAreItsGemmsConvolutionsAndRecurrentLayersOnceEach) {
    const auto problems = suite_problems("deepbench");
    std::map<std::string, int> of;
    std::set<std::string> shapes;
    for (const AskedProblem& p : problems) {
        ++of[p.op];
        EXPECT_EQ(shape_text(p.problem), p.shape) << "written as results name it";
        const Direction direction = p.problem.direction;
        EXPECT_TRUE(
            shapes
                .insert(p.op + " " + p.shape + (direction == Direction::fwd ? "" : " " + std::string(name(direction))))
                .second)
            << p.shape << " stands there twice";
    }
    EXPECT_THAT(
        of, ElementsAre(Pair("conv2d", 191), Pair("gemm", 243), Pair("gru", 69), Pair("lstm", 37), Pair("rnn", 12)));
    // Shapes of training, on a server and on a device; A transposed; B transposed, m 1760, n 7133, k 1760.
    for (const char* gemm :
         {"gemm m16n1760k1760", "gemm m700n5124k2048", "gemm m2n512k500000", "gemm m1n64k1216", "gemm m1500n4224k176",
          "gemm m16n512k512", "gemm m128n7680k2560t", "gemm m1760n1760k7133 wgrad", "gemm m512n1024k16 wgrad"})
        EXPECT_TRUE(shapes.contains(gemm)) << gemm;
    // w 700, h 161, c 1, n 32, k 32, 20 wide and 5 high, no padding, strides of 2.
    EXPECT_TRUE(shapes.contains("conv2d n32c1h161w700k32r5s20u2v2"));
    EXPECT_TRUE(shapes.contains("conv2d n16c2048h7w7k512r1s1u2v2p3q3"));
    EXPECT_TRUE(shapes.contains("rnn t50n16h1760"));
    EXPECT_TRUE(shapes.contains("lstm t150n4h256"));
    EXPECT_TRUE(shapes.contains("gru t1500n32h2816"));
    EXPECT_FALSE(shapes.contains("gru t1n32h512")) << "no product is in it where h begins with 0";
    EXPECT_THAT(refusal_of([] { suite_problems("mlperf"); }), HasSubstr("must be one of deepbench"));
}

TEST(MicroProblems, OfDeepBenchSayWhereTheyAreNotDeepBenchs) {
    const auto notes = [](const std::string& op, const std::string& shape) {
        const MicroCase micro{problem(op, shape), "native", Precision::fp32, CacheState::hot};
        return suite_notes("deepbench", {&micro, 1});
    };
    EXPECT_THAT(notes("gemm", "m8n8k8"), IsEmpty());
    EXPECT_THAT(notes("gru", "t8n8h8"), ElementsAre(AllOf(HasSubstr("suite deepbench: lstm gru rnn: both directions"),
                                                          HasSubstr("twice its weights and FLOPs"))));
}

// ---- what the command line asks for --------------------------------------------------------------------------------

MicroRequest request_of(const std::vector<std::string>& arguments) { return parse_micro(arguments).request; }

TEST(MicroOptions, GoogleBenchmarksGoToIt) {
    const ParsedMicro parsed =
        parse_micro({"--op", "gemm", "--benchmark_filter=x", "--benchmark_min_time=0.25", "--v=1", "--cache", "hot"});
    EXPECT_THAT(parsed.benchmark_arguments, ElementsAre("kbench micro", "--benchmark_min_time=0.25",
                                                        "--benchmark_time_unit=us", "--benchmark_filter=x", "--v=1"));
    EXPECT_EQ(parsed.request.device_s, 0.25);
    const ParsedMicro newer = parse_micro({"--benchmark_min_time=0.5s"});  // as newer versions of the library write it
    EXPECT_EQ(newer.request.device_s, 0.5);
    EXPECT_THAT(newer.benchmark_arguments, testing::Contains("--benchmark_min_time=0.5"));
    EXPECT_THAT(newer.benchmark_arguments, testing::Not(testing::Contains("--benchmark_min_time=0.5s")));
    EXPECT_THAT(refusal_of([] { parse_micro({"--benchmark_min_time=soon"}); }),
                HasSubstr("--benchmark_min_time 'soon'"));
    EXPECT_THAT(refusal_of([] { parse_micro({"--cashe", "hot"}); }), HasSubstr("--cashe"));
}

TEST(MicroOptions, ShapesComeFromOnePlace) {
    EXPECT_THAT(refusal_of([] {
                    request_of({"--suite", "deepbench", "--shapes-of", "gpt2"});
                }),
                HasSubstr("--shapes-of and --suite exclude each other"));
    EXPECT_THAT(refusal_of([] { asked_problems(request_of({"--shape", "m1n2k3"})); }), HasSubstr("name it"));
    EXPECT_THAT(refusal_of([] {
                    asked_problems(request_of({"--op", "conv"}));
                }),
                HasSubstr("--op conv: unknown op 'conv'; did you mean conv2d?"));
    EXPECT_THAT(refusal_of([] {
                    asked_problems(request_of({"--op", "attention", "--heads", "2"}));
                }),
                HasSubstr("--heads and --head-size belong together"));
    EXPECT_THAT(refusal_of([] { asked_problems(request_of({"--shapes", "/none"})); }), HasSubstr("cannot be read"));
    EXPECT_THAT(refusal_of([] { asked_problems(request_of({"--shapes-of", "gpt3"})); }), HasSubstr("did you mean"));
}

TEST(MicroOptions, AnOpThatTheUsualModelLacksHasItsExampleShape) {
    for (const OpKind* kind : op_kinds()) {
        const auto problems = asked_problems(request_of({"--op", std::string(kind->name)}));
        EXPECT_FALSE(problems.empty()) << kind->name;
    }
    const auto conv2d = asked_problems(request_of({"--op", "conv2d", "--direction", "wgrad"}));
    ASSERT_EQ(conv2d.size(), 1U);
    EXPECT_EQ(conv2d.front().shape, example_shape(require_op_kind("conv2d")));
    for (const std::vector<std::string>& elsewhere :
         {std::vector<std::string>{"--op", "conv2d", "--shapes-of", "gpt2"}, {"--op", "conv2d", "--seq", "64"}})
        EXPECT_THAT(refusal_of([&] { asked_problems(request_of(elsewhere)); }),
                    HasSubstr("--op 'conv2d': there is none here; "));
}

TEST(MicroOptions, ListsAreEveryCombination) {
    const auto problems = asked_problems(request_of(
        {"--op", "attention", "--batch", "1,4", "--heads", "20", "--seq", "1024,4096", "--head-size", "64"}));
    std::vector<std::string> shapes;
    for (const AskedProblem& p : problems) shapes.push_back(p.shape);
    EXPECT_THAT(shapes, ElementsAre("b1h20s1024d64", "b1h20s4096d64", "b4h20s1024d64", "b4h20s4096d64"));
}

TEST(MicroOptions, AModelsOpsStandAtEveryCombinationOfItsAxes) {
    const auto shapes = [](const std::vector<std::string>& arguments) {
        std::vector<std::string> found;
        for (const AskedProblem& p : asked_problems(request_of(arguments))) found.push_back(p.op + " " + p.shape);
        return found;
    };
    const std::vector<std::string> model_alone{"--shapes-of", "deepspeech2"};
    const std::vector<std::string> model{"--shapes-of", "deepspeech2", "--op"};
    const auto of = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), model.begin(), model.end());
        return shapes(arguments);
    };
    EXPECT_THAT(of({"conv2d,lstm,batchnorm", "--batch", "1,8", "--cell", "lstm"}),
                ElementsAre("conv2d n1c1h161w1000k32r41s11u2v2p20q5b", "conv2d n1c32h81w500k32r21s11u2p10q5b",
                            "conv2d n8c1h161w1000k32r41s11u2v2p20q5b", "conv2d n8c32h81w500k32r21s11u2p10q5b",
                            "batchnorm r2592w500c32h81", "batchnorm r1312w500c32h41", "batchnorm r500w1024",
                            "batchnorm r20736w500c32h81", "batchnorm r10496w500c32h41", "batchnorm r4000w1024",
                            "lstm t500n1h1024f2", "lstm t500n8h1024f2"));
    EXPECT_THAT(of({"lstm,gru,rnn", "--frames", "117,61", "--batch", "3"}),
                ElementsAre("lstm t59n3h1024f2", "lstm t31n3h1024f2", "gru t59n3h1024f2", "gru t31n3h1024f2",
                            "rnn t59n3h1024f2", "rnn t31n3h1024f2"))
        << "every cell where none is asked for";
    EXPECT_THAT(of({"gru", "--cell", "rnn,gru"}), ElementsAre("gru t500n1h1024f2"));
    EXPECT_THAT(of({"ctc", "--batch", "8", "--frames", "1000,1000"}), ElementsAre("ctc t500n8v29s150f2"))
        << "what training minimises, where it is asked for";
    EXPECT_THAT(shapes(model_alone), testing::Not(testing::Contains(HasSubstr("ctc"))));
    EXPECT_THAT(refusal_of([&] {
                    of({"gru", "--cell", "lstm"});
                }),
                HasSubstr("--op 'gru': there is none here; must be one of"));
    EXPECT_THAT(refusal_of([&] {
                    of({"gru", "--cell", "peephole"});
                }),
                HasSubstr("must be one of lstm, gru, rnn or all"));
    EXPECT_THAT(shapes({"--shapes-of", "gpt2", "--op", "scale_mask", "--seq", "8", "--attention", "unfused"}),
                ElementsAre("scale_mask b1h12s8d64"));
}

TEST(MicroOptions, AModelsPhasesHaveTheirOps) {
    const auto of = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"--shapes-of", "gpt2", "--op", "attention,cached_attention"});
        std::vector<std::string> shapes;
        for (const AskedProblem& p : asked_problems(request_of(more))) shapes.push_back(p.shape);
        return shapes;
    };
    EXPECT_THAT(of({"--phase", "forward,decode", "--past", "7,15", "--seq", "8"}),
                ElementsAre("b1h12s8d64", "b1h12q1k8d64", "b1h12q1k16d64"));
    const auto refusal = [&](const std::vector<std::string>& more) { return refusal_of([&] { of(more); }); };
    EXPECT_THAT(refusal({"--phase", "decode"}), HasSubstr("--op 'attention': there is none here"));
    EXPECT_THAT(refusal({"--seq", "8"}), HasSubstr("--op 'cached_attention': there is none here"))
        << "the usual phase alone, unless asked";
    EXPECT_EQ(refusal({"--past", "7"}), "--past: only --phase decode has one");
    EXPECT_EQ(refusal({"--phase", "decode", "--seq", "8"}), "--seq: only --phase forward or prefill has one");
}

TEST(MicroOptions, AnAxisThatNothingWouldReadIsRefused) {
    const auto refusal = [](const std::vector<std::string>& arguments) {
        return refusal_of([&] { asked_problems(request_of(arguments)); });
    };
    EXPECT_EQ(refusal({"--shapes-of", "gpt2", "--frames", "100"}),
              "--frames: gpt2 has no frames; it has batch, seq, attention, phase, new, past");
    EXPECT_EQ(refusal({"--shapes-of", "deepspeech2", "--seq", "8"}),
              "--seq: deepspeech2 has no seq; it has batch, frames, cell, lengths");
    EXPECT_EQ(refusal({"--suite", "deepbench", "--batch", "4"}),
              "--batch: is of a model's ops, and --suite says all of a shape");
    EXPECT_EQ(refusal({"--op", "gemm", "--shape", "m1n2k3", "--cell", "gru"}),
              "--cell: is of a model's ops, and --shape says all of a shape");
    EXPECT_EQ(refusal({"--op", "attention", "--heads", "2", "--head-size", "8", "--frames", "9"}),
              "--frames: is of a model's ops, and --heads says all of a shape");
    EXPECT_THAT(refusal({"--batch", "max"}), HasSubstr("--batch 'max': must be a whole number"));
}

TEST(MicroOptions, DirectionsAreThoseThatAnOpHas) {
    const auto of = [](const std::vector<std::string>& arguments) {
        std::vector<std::string> found;
        for (const AskedProblem& p : asked_problems(request_of(arguments)))
            found.push_back(p.op + " " + std::string(name(p.problem.direction)) + " " + p.shape);
        return found;
    };
    EXPECT_THAT(of({"--op", "gemm", "--shape", "m8n8k8,m8n9k8t", "--direction", "dgrad,wgrad"}),
                ElementsAre("gemm dgrad m8n8k8", "gemm wgrad m8n8k8", "gemm dgrad m8n9k8t", "gemm wgrad m8n9k8t"));
    EXPECT_THAT(of({"--op", "gemm,layernorm", "--shapes-of", "gpt2", "--seq", "8", "--direction", "fwd,wgrad"}),
                AllOf(Contains("layernorm fwd r8w768"), Contains("gemm fwd m8n768k768"),
                      Contains("gemm wgrad m8n768k768"), Not(Contains(HasSubstr("layernorm wgrad")))));
    // Lines of a suite that name a direction stand for that alone.
    EXPECT_THAT(of({"--suite", "deepbench", "--op", "gemm"}), AllOf(Contains("gemm wgrad m512n512k16"), SizeIs(243)));
    EXPECT_THAT(of({"--suite", "deepbench", "--op", "gemm", "--direction", "fwd"}), SizeIs(233));
    EXPECT_THAT(of({"--suite", "deepbench", "--op", "gemm", "--direction", "wgrad"}), SizeIs(243));
    const auto refusal = [&](const std::vector<std::string>& arguments) { return refusal_of([&] { of(arguments); }); };
    EXPECT_THAT(refusal({"--direction", "sideways"}), HasSubstr("must be one of fwd, bwd, dgrad, wgrad"));
    EXPECT_EQ(refusal({"--op", "layernorm", "--direction", "wgrad"}),
              "--direction wgrad: none of the ops asked for has it");
    EXPECT_EQ(refusal({"--op", "gemm,layernorm", "--direction", "dgrad"}), "--direction: layernorm has fwd, bwd alone");
    EXPECT_THAT(refusal({"--op", "gemm", "--shape", "m8n8k8+bias", "--direction", "dgrad"}), HasSubstr("m8n8k8+bias"));
}

TEST(MicroOptions, WithoutAShapeAreGpt2LargesOps) {
    const auto problems = asked_problems(request_of({"--op", "gemm,layernorm"}));
    std::vector<std::string> shapes;
    for (const AskedProblem& p : problems) shapes.push_back(p.shape);
    EXPECT_THAT(shapes, ElementsAre("r1024w1280", "m1024n3840k1280", "m1024n1280k1280", "m1024n5120k1280",
                                    "m1024n1280k5120", "m1024n50257k1280t"));
}

TEST(MicroOptions, AreDocumented) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/docs/micro.md";
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << micro_markdown();
    EXPECT_EQ(read_file(path), micro_markdown()) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

// ---- how often they run --------------------------------------------------------------------------------------------

TEST(RunShape, ColdSetsExceedTheCachesThreeTimesAndAreGoneRoundWhole) {
    for (const double bytes : {1e5, 1e6, 3e7, 1e9})
        for (const double cache : {1e6, 5e7})
            for (const double launch_us : {0.0, 200.0}) {
                const RunShape shape = run_shape(CacheState::cold, bytes, cache, 7, launch_us);
                EXPECT_GE(static_cast<double>(shape.sets - 1) * bytes, 3 * cache)
                    << "those between two runs of one set";
                EXPECT_GE(shape.sets, 2);
                EXPECT_EQ(shape.runs % shape.sets, 0);
                EXPECT_GE(shape.runs, shape.sets);
            }
    EXPECT_THROW(run_shape(CacheState::cold, 1000, 5e7, 1, 200), Unsupported) << "150,001 sets";
}

TEST(RunShape, HotRunsShareOneSetAndFillALaunch) {
    const RunShape shape = run_shape(CacheState::hot, 1e6, 5e7, 4, 200);
    EXPECT_EQ(shape.sets, 1);
    EXPECT_EQ(shape.runs, 50);
    EXPECT_EQ(run_shape(CacheState::hot, 1e6, 5e7, 4, 0).runs, 1) << "a CPU reads its clock around each";
    EXPECT_EQ(run_shape(CacheState::hot, 1e6, 5e7, 1e-9, 200).runs, most_runs);
}

TEST(FoldRuns, GivesOneRunOfMany) {
    Point point;
    for (int run = 0; run < 4; ++run) {
        StepResult step;
        step.layer = fmt::format("run.{}", run);
        step.absorbs = {step.layer + ":gemm"};
        if (run > 0) step.counters["dram_read_bytes"] = 100 * run;  // the first was not counted
        step.kernels.resize(1);
        step.kernels[0].time_us = run == 3 ? 100 : 5;
        step.cost.flops = 10;
        point.steps.push_back(step);
        point.cost.flops += 10;
    }
    point.activity.kernels_ms = 8;
    fold_runs(point);
    ASSERT_EQ(point.steps.size(), 1u);
    EXPECT_EQ(point.steps[0].counters["dram_read_bytes"], 200);
    EXPECT_EQ(point.steps[0].kernels[0].time_us, 5) << "the median: one run in four was disturbed";
    EXPECT_THAT(point.steps[0].absorbs, ElementsAre("micro:gemm"));
    EXPECT_EQ(point.cost.flops, 10);
    EXPECT_EQ(point.activity.kernels_ms, 2);
}

// ---- figures -------------------------------------------------------------------------------------------------------

CeilingRun roofs_of(double gb_per_s, double tflop_per_s) {
    CeilingRun run;
    run.ceilings.resize(2);
    run.ceilings[0].name = "cpu_dram_triad";
    run.ceilings[0].value = Quantity::measured(gb_per_s);
    run.ceilings[1].name = "avx512_fp32";
    run.ceilings[1].value = Quantity::measured(tflop_per_s);
    return run;
}

Point one_step(double flops, double bytes) {
    Point point;
    StepResult step;
    step.op = "gemm";
    step.matrix_flops = step.cost.flops = flops;
    step.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = bytes;
    point.steps.push_back(step);
    return point;
}

TEST(MicroFigures, ShareIsOfTheRoofThatBinds) {
    const Roofs roofs(roofs_of(100, 1), "cpu");
    const Summary ms = summarise(std::vector{2.0, 2.0, 2.0});
    const MicroFigures compute = micro_figures(one_step(1e9, 1e6), ms, roofs, CacheState::cold);
    EXPECT_DOUBLE_EQ(compute.tflop_per_s, 0.5);
    EXPECT_DOUBLE_EQ(compute.gb_per_s, 0.5);
    EXPECT_DOUBLE_EQ(compute.roof_share.value(), 0.5);
    EXPECT_EQ(compute.roof, "avx512_fp32");
    const MicroFigures memory = micro_figures(one_step(1e6, 1e8), ms, roofs, CacheState::cold);
    EXPECT_DOUBLE_EQ(memory.roof_share.value(), 0.5);
    EXPECT_EQ(memory.roof, "cpu_dram_triad");
    EXPECT_FALSE(compute.dram_bytes || compute.executed_flops || compute.achieved_occupancy_pct || compute.clock_mhz);
}

TEST(MicroColumns, AreThoseThatTheMachineTells) {
    EXPECT_THAT(micro_column_names(false, false), ElementsAre("ci%", "GB/s", "TFLOP/s", "roof%"));
    EXPECT_THAT(micro_column_names(false, true), ElementsAre("ci%", "GB/s", "TFLOP/s", "roof%", "MHz"));
    EXPECT_THAT(micro_column_names(true, false),
                ElementsAre("ci%", "GB/s", "TFLOP/s", "roof%", "occupancy%", "DRAM_MB", "GFLOP"));
    EXPECT_EQ(micro_column_names(true, true).size(), micro_columns().size());
}

TEST(MicroFigures, ClockIsThatOfTheTimedRuns) {
    Point point = one_step(1e9, 1e6);
    point.conditions.sm_clock_mhz = Quantity::measured(1695);
    EXPECT_EQ(micro_figures(point, summarise(std::vector{2.0, 2.0}), Roofs(roofs_of(100, 1), "cpu"), CacheState::cold)
                  .clock_mhz,
              1695);
}

TEST(MicroFigures, HotDataAreNotHeldAgainstDramUnlessItsBytesWereCounted) {
    const Roofs roofs(roofs_of(100, 1), "cpu");
    const Summary ms = summarise(std::vector{2.0, 2.0, 2.0});
    Point point = one_step(1e8, 1e9);
    EXPECT_EQ(micro_figures(point, ms, roofs, CacheState::hot).roof, "avx512_fp32");
    point.steps[0].counters = {{"dram_read_bytes", 1.5e8}, {"dram_write_bytes", 0}};
    point.counters.metrics.emplace_back();
    point.counters.metrics[0].name = "dram_read_bytes";
    point.counters.metrics[0].origin = Origin::estimated;
    EXPECT_EQ(micro_figures(point, ms, roofs, CacheState::hot).roof, "avx512_fp32") << "an estimate is none either";
    EXPECT_FALSE(micro_figures(point, ms, roofs, CacheState::hot).dram_bytes);
    point.counters.metrics[0].origin = Origin::measured;
    const MicroFigures counted = micro_figures(point, ms, roofs, CacheState::hot);
    EXPECT_EQ(counted.roof, "cpu_dram_triad");
    EXPECT_DOUBLE_EQ(counted.roof_share.value(), 0.75);
    EXPECT_DOUBLE_EQ(counted.dram_bytes.value(), 1.5e8);
}

TEST(ExpectNoTraffic, OfHotOperandsThatFitWhereItWasOnlyEstimated) {
    Point estimated = one_step(1e6, 1e6);
    estimated.steps[0].counters = {{"dram_read_bytes", 1e6}, {"dram_write_bytes", 5e5}, {"cycles", 7}};
    estimated.counters.metrics.resize(2);
    estimated.counters.metrics[0].name = "dram_read_bytes";
    estimated.counters.metrics[1].name = "dram_write_bytes";
    for (CountedMetric& metric : estimated.counters.metrics) metric.origin = Origin::estimated;
    Point counted = estimated, large = estimated;
    counted.counters.metrics[0].origin = Origin::measured;
    expect_no_traffic(estimated, 1e6, 2e6);
    EXPECT_EQ(estimated.steps[0].counters["dram_read_bytes"], 0);
    EXPECT_EQ(estimated.steps[0].counters["dram_write_bytes"], 0);
    EXPECT_EQ(estimated.steps[0].counters["cycles"], 7);
    EXPECT_THAT(estimated.counters.metrics[0].reason, HasSubstr("1 MB of hot operands stay in 2 MB of caches"));
    expect_no_traffic(counted, 1e6, 2e6);
    EXPECT_EQ(counted.steps[0].counters["dram_read_bytes"], 1e6) << "counted is counted";
    expect_no_traffic(large, 3e6, 2e6);
    EXPECT_EQ(large.steps[0].counters["dram_read_bytes"], 1e6);
}

// ---- running -------------------------------------------------------------------------------------------------------

class Session : public testing::Test {
  protected:
    Session() {
        options_.sampler.warm_up_s = 0;
        options_.sampler.time_budget_s = 0.02;
        options_.sampler.min_samples = 3;
        result_.ceilings = roofs_of(1e6, 1e6);
        session_.emplace(options_, cpu(), profiler(), providers_, result_, 1e-5);
    }
    static Device& cpu() {
        static const std::unique_ptr<Device> device = make_cpu_device();
        return *device;
    }
    static Profiler& profiler() { return cpu_profiler(); }
    /// A repetition of `samples` samples.
    MicroFigures measure(const MicroCase& micro, std::size_t samples) {
        return session_->measure(micro, [&] { session_->sample(samples * session_->runs_a_sample()); });
    }
    static MicroCase micro(const std::string& op, const std::string& shape, const std::string& provider,
                           Precision precision = Precision::fp32, CacheState cache = CacheState::hot) {
        return {problem(op, shape), provider, precision, cache};
    }

    PointOptions options_;
    Providers providers_ = make_providers(BackendKind::cpu, {});
    Result result_;
    std::optional<MicroSession> session_;
};

TEST_F(Session, EveryRepetitionIsTimedWithNothingAttached) {
    OtherProfiler other;
    session_.emplace(options_, cpu(), other, providers_, result_, 1e-5);
    const MicroCase gemm = micro("gemm", "m48n40k32", "onednn");
    for (int repetition = 0; repetition < 3; ++repetition)
        session_->measure(gemm, [&] {
            EXPECT_EQ(std::exchange(other.detached, 0), 1) << repetition;
            session_->sample(3 * session_->runs_a_sample());
        });
}

TEST_F(Session, AVerifiedBenchmarkBecomesAPointOfOneRun) {
    std::size_t samples = 0;
    double seconds = 0;
    const MicroFigures figures = session_->measure(micro("gemm", "m48n40k32+bias+gelu", "onednn"), [&] {
        EXPECT_EQ(session_->planned_runs(7), 7u) << "as many as the repetition before";
        const std::size_t runs = session_->planned_runs(1);
        EXPECT_EQ(session_->planned_runs(1), runs);
        samples = runs / session_->runs_a_sample();
        EXPECT_GE(samples, 6u) << "with fewer the median has no interval";
        seconds = session_->sample(runs);
    });
    ASSERT_EQ(result_.points.size(), 1u);
    const Point& point = result_.points[0];
    EXPECT_EQ(point.model(), "gemm/onednn/fp32/fwd/m48n40k32+bias+gelu/hot");
    EXPECT_EQ(point.status, PointStatus::done);
    for (const char* axis : {"seq", "attention", "batch", "repeat"})
        EXPECT_EQ(point.axes.find(axis), nullptr) << axis << " means nothing for an op";
    EXPECT_FALSE(point.end_to_end->tokens_per_s || point.end_to_end->sequences_per_s ||
                 point.end_to_end->energy_per_sequence_j || point.end_to_end->energy_per_token_j);
    ASSERT_EQ(point.verification.steps.size(), 1u);
    EXPECT_GT(point.verification.steps[0].elements_checked, 0);
    // Beside other work some are taken again, for as long as the time budget lasts.
    if (!point.conditions.cpu_share || point.conditions.cpu_share->starved_samples == 0) {
        EXPECT_GE(point.end_to_end->latency.samples_ms.size(), samples);
    }
    EXPECT_DOUBLE_EQ(point.end_to_end->latency.summary_ms.median, seconds * 1e3);
    ASSERT_EQ(point.steps.size(), 1u);
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(figures.tflop_per_s, point.cost.flops / seconds * 1e-12, 1e-9);
    EXPECT_GE(point.cost.flops, 2.0 * 48 * 40 * 32);
}

TEST_F(Session, AGradientIsVerifiedAgainstItsOwnReference) {
    for (const Direction direction : {Direction::dgrad, Direction::wgrad})
        for (const char* provider : {"onednn", "blas"}) {
            MicroCase one = micro("gemm", "m48n40k33t", provider);
            one.asked.problem = parse_problem("gemm", "m48n40k33t", direction);
            measure(one, 3);
            const Point& point = result_.points.back();
            EXPECT_EQ(point.status, PointStatus::done) << point.reason;
            EXPECT_EQ(point.model(), fmt::format("gemm/{}/fp32/{}/m48n40k33t/hot", provider, name(direction)));
            EXPECT_EQ(point.steps.at(0).direction, direction);
            EXPECT_GT(point.verification.steps.at(0).elements_checked, 0);
            EXPECT_EQ(point.cost.flops, 2.0 * 48 * 40 * 33);
        }
}

TEST_F(Session, ColdRunsUseAsManySetsAsCachesNeed) {
    // 2 MB of operands; this machine's caches decide how many sets that makes.
    measure(micro("residual", "r512w512", "native", Precision::fp32, CacheState::cold), 3);
    const double bytes = 3.0 * 512 * 512 * 4;
    const Point& point = result_.points[0];
    EXPECT_GE(static_cast<double>(point.memory.bytes[static_cast<std::size_t>(Role::activations)]),
              3.0 * static_cast<double>(cpu().info().cache_bytes) + bytes);
    EXPECT_NEAR(point.cost.bytes(), bytes, 1) << "of one run, not of all sets";
    EXPECT_FALSE(point.compulsory_bytes) << "a single op's are its unfused traffic";
}

TEST_F(Session, AWrongKernelIsNeverTimed) {
    try {
        measure(micro("residual", "r16w16", "wrong"), 3);
        FAIL() << "it was accepted";
    } catch (const MeasurementError& error) {
        EXPECT_THAT(error.what(), HasSubstr("wrong"));
    }
    ASSERT_EQ(result_.points.size(), 1u);
    EXPECT_EQ(result_.points[0].status, PointStatus::failed);
    EXPECT_THAT(result_.points[0].reason, HasSubstr("verification failed: residual r16w16"));
    EXPECT_FALSE(result_.points[0].end_to_end);
}

TEST_F(Session, WhatAProviderCannotDoIsAPointWithItsReason) {
    EXPECT_THROW(measure(micro("gemm", "m8n8k8", "blas", Precision::bf16), 3), Unsupported);
    EXPECT_THROW(measure(micro("gemm", "m8n8k8+bias+gelu", "blas"), 3), Unsupported) << "it fuses nothing";
    ASSERT_EQ(result_.points.size(), 2u);
    for (const Point& point : result_.points) {
        EXPECT_EQ(point.status, PointStatus::skipped);
        EXPECT_THAT(point.reason, Not(IsEmpty()));
    }
}

TEST_F(Session, AnotherRepetitionAddsToThePoint) {
    const MicroCase first = micro("residual", "r16w16", "native"), other = micro("residual", "r32w16", "native");
    std::map<std::string, std::size_t> planned;
    for (const MicroCase& one : {first, other, first}) {
        session_->measure(one, [&] {
            const std::size_t runs = session_->planned_runs(1);
            EXPECT_EQ(planned.emplace(one.name(), runs).first->second, runs) << "repetitions are of one length";
            session_->sample(5 * session_->runs_a_sample());
        });
    }
    ASSERT_EQ(result_.points.size(), 2u);
    EXPECT_GE(result_.points[0].end_to_end->latency.samples_ms.size(), 10u);
    EXPECT_LT(result_.points[1].end_to_end->latency.samples_ms.size(), 10u);
    EXPECT_EQ(result_.points[0].steps.size(), 1u);
}

TEST_F(Session, AfterTheDeviceIsLostNothingIsMeasured) {
    OtherDevice device;
    device.before_call = [&] {
        if (result_.points.size() == 2) throw DeviceError("cudaErrorIllegalAddress");
    };
    MicroSession session(options_, device, profiler(), providers_, result_, 1e-5);
    const std::vector<MicroCase> cases{micro("residual", "r16w16", "native"), micro("residual", "r32w16", "native"),
                                       micro("residual", "r64w16", "native")};
    const BenchmarksEnd end =
        run_benchmarks(session, cases, {"kbench micro", "--benchmark_min_time=0.001"}, {}, {}, std::nullopt, [] {});
    EXPECT_EQ(end.device_lost, cases[1].name() + ": cudaErrorIllegalAddress");
    EXPECT_EQ(end.first_wrong, end.device_lost);
    ASSERT_EQ(result_.points.size(), 2u) << "the third was not begun";
    EXPECT_EQ(result_.points[0].status, PointStatus::done);
    EXPECT_EQ(result_.points[1].status, PointStatus::failed);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

/// As State::SkipWithError leaves a row, whose fields have other names in newer versions.
template <class Run>
void mark_skipped(Run& row, const std::string& why) {
    if constexpr (requires { row.error_occurred; }) {
        row.error_occurred = true;
        row.error_message = why;
    } else {
        row.skipped = decltype(row.skipped)(2);
        row.skip_message = why;
    }
}

/// Rows of fixed figures through one of Google Benchmark's reporters.
std::string reported(std::unique_ptr<benchmark::BenchmarkReporter> inner,
                     const std::vector<std::string>& columns = {}) {
    RowReporter reporter(std::move(inner), columns);
    std::ostringstream out;
    reporter.SetOutputStream(&out);
    std::ostringstream context;
    reporter.SetErrorStream(&context);
    benchmark::BenchmarkReporter::Context machine;
    machine.name_field_width = 40;
    reporter.ReportContext(machine);
    EXPECT_THAT(context.str(), Not(HasSubstr("DEBUG")));
    out.str("");  // JSON's context is the machine's

    benchmark::BenchmarkReporter::Run skipped, timed;
    for (auto* row : {&skipped, &timed}) {
        row->family_index = row->per_family_instance_index = row->repetition_index = 0;
        row->repetitions = 1;
    }
    skipped.run_name.function_name = "gemm/onednn/fp64/fwd/m8n8k8/cold";
    skipped.run_name.time_type = "manual_time";
    mark_skipped(skipped, "oneDNN has no fp64");
    timed.run_name.function_name = "gemm/onednn/fp32/fwd/m8n8k8/cold";
    timed.run_name.time_type = "manual_time";
    timed.iterations = 4;
    timed.time_unit = benchmark::kMicrosecond;
    timed.real_accumulated_time = 1e-4;
    timed.cpu_accumulated_time = 2e-4;
    timed.counters["GB/s"] = 12.5;
    timed.counters["TFLOP/s"] = 0.25;
    timed.report_label = "jit; roof avx512_fp32";
    for (const auto& row : {skipped, timed, skipped, timed}) reporter.ReportRuns({row});
    reporter.Finalize();
    return out.str();
}

TEST(MicroRows, InJson) { expect_golden("micro.json", reported(std::make_unique<benchmark::JSONReporter>()), "bench"); }

TEST(MicroRows, InCsvHaveEveryColumnInTheFirstLine) {
    std::ostringstream file;
    const auto inner = make_file_reporter({"--benchmark_out=x", "--benchmark_out_format=csv"}, {}, {}, file);
    ASSERT_NE(inner, nullptr);
    EXPECT_EQ(make_file_reporter({}, {}, {}, file), nullptr);
    EXPECT_THAT(refusal_of([&] {
                    make_file_reporter({"--benchmark_out=x", "--benchmark_out_format=xml"}, {}, {}, file);
                }),
                HasSubstr("must be one of console, json, csv"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    expect_golden("micro.csv", reported(std::make_unique<benchmark::CSVReporter>(), {"GB/s", "DRAM_MB", "TFLOP/s"}),
                  "bench");
#pragma GCC diagnostic pop
}

}  // namespace
}  // namespace kbench
