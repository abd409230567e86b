// A study says only what its points know. Planted: a copied batch, a precision that ran another, a point slowed by
// heat, a point that is missing: each is named, and no sentence rests on it.
#include "analysis/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "analysis/result/merge.h"
#include "analysis/result/result_json.h"
#include "analysis/study/figures.h"
#include "analysis/study/throttling.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Times of a batch or a precision: everything in proportion.
example::Machine times(double factor) {
    return {"cublaslt",    "flash_wgmma_64", 17.9 * factor, 17.6 * factor, 9.0 * factor,
            25.1 * factor, 21.2 * factor,    3.6 * factor,  175 * factor};
}

Point measured(Precision precision, std::int64_t batch, double median_ms) {
    Point point = example::finished_point("cuda", precision, batch, times(median_ms / 3.68), median_ms);
    point.end_to_end->energy_per_sequence_j = Quantity::measured(2.0 / static_cast<double>(batch));
    example::add_profile(point);
    point.activity.unprofiled_ms = median_ms;  // no drift
    point.conditions.throttle_reasons = {"sw_power_cap"};
    for (StepResult& step : point.steps) {
        step.matrix_flops = step.op == "gemm" ? step.cost.flops : 0;
        for (KernelResult& kernel : step.kernels) {
            kernel.short_name = std::string(name(precision)) + "_" + step.implementation;
            kernel.name = kernel.short_name;
            kernel.grid = {132, batch, 1};
        }
        for (const char* type : {"fp16", "bf16", "tf32", "fp64"})
            step.counters[std::string("tensor_") + type + "_ops"] = type == name(precision) ? step.matrix_flops : 0;
    }
    return point;
}

PlannedPoint planned(const Point& point, std::vector<std::string> tasks) {
    return {point.axes, point.batch_is_max, std::move(tasks), ""};
}

/// A study of a forward: batches 1, 4 and 16, three precisions. The place of each point is its index.
struct Studied {
    enum { base, bf16, fp32, four, sixteen };
    Result result = example::result();

    Studied() {
        result.points = {measured(Precision::fp16, 1, 3.68), measured(Precision::bf16, 1, 3.6),
                         measured(Precision::fp32, 1, 38.0), measured(Precision::fp16, 4, 12.6),
                         measured(Precision::fp16, 16, 48.0)};
        const auto& points = result.points;
        result.study = StudyPlan{480,
                                 {planned(points[base], {"bottlenecks", "batch", "precision", "directions"}),
                                  planned(points[bf16], {"precision"}), planned(points[fp32], {"precision"}),
                                  planned(points[four], {"batch"}), planned(points[sixteen], {"batch"})}};
    }
};

/// All sentences that rest on figures.
std::vector<StudyFinding> sentences(const Study& study) {
    std::vector<StudyFinding> all;
    for (const StudyAnswer& answer : study.answers)
        all.insert(all.end(), answer.findings.begin(), answer.findings.end());
    for (const StudyChange& change : study.changes) all.push_back(change.evidence);
    return all;
}

bool rests_on(const Study& study, std::size_t point) {
    const auto is_of = [&](const StudyFigure& figure) {
        return std::ranges::find(figure.points, point) != figure.points.end();
    };
    return std::ranges::any_of(
               sentences(study),
               [&](const StudyFinding& finding) { return std::ranges::any_of(finding.figures, is_of); }) ||
           std::ranges::any_of(study.batches, [&](const StudyRow& row) { return row.point == point; }) ||
           std::ranges::any_of(study.precisions, [&](const StudyRow& row) { return row.point == point; });
}

/// Why it is left aside; empty where it is not.
std::string why_aside(const Study& study, const std::string& point) {
    for (const StudyExclusion& excluded : study.excluded)
        if (excluded.point == point) return excluded.why;
    return "";
}

TEST(Study, OfSpeechSpeaksOfUtterances) {
    Studied studied;
    for (Point& point : studied.result.points) point.set("frames", 1000);
    for (PlannedPoint& planned : studied.result.study->points) planned.axes.set("frames", std::int64_t{1000});
    EXPECT_EQ(study_of(studied.result).sequence, "utterance");
    std::string text;
    for (const StudyFinding& finding : sentences(study_of(studied.result))) text += finding.text + "\n";
    EXPECT_THAT(text, testing::AllOf(HasSubstr(" utterances/s"), HasSubstr("An utterance takes"),
                                     testing::Not(HasSubstr("sequence"))));
    EXPECT_THAT(write_markdown(studied.result), HasSubstr("| utterances/s |"));
}

/// Those of three kernels took the answer past one screen; libraries' kernels are told apart by nothing else.
TEST(Study, NamesKernelsInSentencesWithoutTheirTemplateArguments) {
    Studied studied;
    for (StepResult& step : studied.result.points[Studied::base].steps)
        for (KernelResult& kernel : step.kernels) kernel.short_name = "a_kernel<__nv_bfloat16, 16, (Variant)0>";
    const Study study = study_of(studied.result);
    ASSERT_FALSE(study.layers.empty());
    for (const StudyLayer& layer : study.layers) EXPECT_EQ(layer.kernel, "a_kernel<__nv_bfloat16, 16, (Variant)0>");
    std::string text;
    for (const StudyFinding& finding : sentences(study)) text += finding.text + "\n";
    EXPECT_THAT(text, testing::AllOf(HasSubstr(" of the steps' time (a_kernel"), testing::Not(HasSubstr("a_kernel<"))));
}

TEST(Study, RestsOnEveryPointThatNothingSpeaksAgainst) {
    const Studied studied;
    const Study study = study_of(studied.result);
    EXPECT_THAT(study.excluded, IsEmpty());
    for (const std::size_t point : {Studied::base, Studied::bf16, Studied::fp32, Studied::four, Studied::sixteen})
        EXPECT_TRUE(rests_on(study, point)) << point;
    ASSERT_EQ(study.answers.size(), std::size(study_tasks));
    for (const StudyAnswer& answer : study.answers)
        EXPECT_TRUE(!answer.findings.empty() || !answer.notes.empty()) << answer.kind->name;
}

TEST(Study, EachSentenceHoldsItsFigures) {
    const Study study = study_of(Studied().result);
    for (const StudyFinding& finding : sentences(study))
        for (const StudyFigure& figure : finding.figures) {
            EXPECT_THAT(finding.text, HasSubstr(figure.text));
            EXPECT_LE(figure.value.low, figure.value.value) << finding.text;
            EXPECT_GE(figure.value.high, figure.value.value) << finding.text;
        }
}

TEST(Study, NamesAPointWhoseDataAreACopyOfAnotherBatch) {
    Studied studied;
    Point& copy = studied.result.points[Studied::four];
    copy = studied.result.points[Studied::base];
    copy.set("batch", 4);
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 4 seq 1024 fp16"), HasSubstr("identical samples"));
    EXPECT_FALSE(rests_on(study, Studied::four));
    EXPECT_TRUE(rests_on(study, Studied::base)) << "its work is that of its batch: it is the measurement";
}

TEST(Study, LeavesBothAsideWhereNobodyCanTellWhichIsTheCopy) {
    Studied studied;
    studied.result.points[Studied::four].end_to_end = studied.result.points[Studied::sixteen].end_to_end;
    const Study study = study_of(studied.result);
    for (const char* batch : {"4", "16"})
        EXPECT_THAT(why_aside(study, std::string("gpt2-large batch ") + batch + " seq 1024 fp16"),
                    HasSubstr("identical samples"));
    EXPECT_FALSE(rests_on(study, Studied::four) || rests_on(study, Studied::sixteen));
}

TEST(Study, NamesAPrecisionThatRanAnother) {
    Studied studied;
    for (StepResult& step : studied.result.points[Studied::bf16].steps) {
        step.counters["tensor_bf16_ops"] = 0;
        step.counters["tensor_fp16_ops"] = step.matrix_flops;
    }
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 1 seq 1024 bf16"), HasSubstr("asked for bf16, but"));
    EXPECT_FALSE(rests_on(study, Studied::bf16));
    EXPECT_TRUE(rests_on(study, Studied::base));
}

TEST(Study, TensorCoresProveFp64ThoughPlainCoresWereNotCounted) {
    Studied studied;
    studied.result.points.push_back(measured(Precision::fp64, 1, 37.0));
    studied.result.study->points.push_back(planned(studied.result.points.back(), {"precision"}));
    const auto proof = [&] { return study_of(studied.result).precisions.back().executed; };
    EXPECT_THAT(proof(), HasSubstr("counted in steps with 100 %"));
    for (StepResult& step : studied.result.points.back().steps) step.counters["tensor_fp64_ops"] = 0;
    EXPECT_THAT(proof(), HasSubstr("not proven")) << "no product with inputs in fp64 was seen";
}

TEST(Study, NamesTwoPrecisionsThatRanTheSameKernels) {
    Studied studied;
    Point& bf16 = studied.result.points[Studied::bf16];
    for (std::size_t i = 0; i < bf16.steps.size(); ++i) {
        bf16.steps[i].kernels = studied.result.points[Studied::base].steps[i].kernels;
        for (const char* type : {"fp16", "bf16", "tf32", "fp64"})
            bf16.steps[i].counters.erase(std::string("tensor_") + type + "_ops");
        bf16.steps[i].counters.erase("tensor_pipe_active");
    }
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 1 seq 1024 bf16"), HasSubstr("executed the same kernels"));
    EXPECT_FALSE(rests_on(study, Studied::bf16));
}

TEST(Study, NamesAPointThatHeatOrHardwareSlowed) {
    for (const std::string_view reason : slowing_reasons) {
        Studied studied;
        studied.result.points[Studied::sixteen].conditions.throttle_reasons = {"sw_power_cap", std::string(reason)};
        const Study study = study_of(studied.result);
        EXPECT_THAT(why_aside(study, "gpt2-large batch 16 seq 1024 fp16"), HasSubstr(std::string(reason)));
        EXPECT_FALSE(rests_on(study, Studied::sixteen));
    }
}

TEST(Study, NamesAPointWhoseProcessLackedItsCpus) {
    Studied studied;
    studied.result.points[Studied::sixteen].conditions.cpu_share.emplace().waited_share = Quantity::measured(0.3);
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 16 seq 1024 fp16"), HasSubstr("lacked its CPUs for 30 %"));
    EXPECT_FALSE(rests_on(study, Studied::sixteen));
}

TEST(Study, APowerCapIsHowADeviceIsUnderLoad) {
    const Studied studied;  // all of whose points ran at it
    EXPECT_THAT(not_evidence(studied.result), testing::Each(""));
}

TEST(Study, NamesAMissingPointAndWhatWasLeftOut) {
    Studied studied;
    studied.result.points.erase(studied.result.points.begin() + Studied::sixteen);
    studied.result.study->points[Studied::four].left_out = "the budget was used up";
    studied.result.points.erase(studied.result.points.begin() + Studied::four);
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 16 seq 1024 fp16"), HasSubstr("missing"));
    EXPECT_THAT(why_aside(study, "gpt2-large batch 4 seq 1024 fp16"), HasSubstr("the budget was used up"));
    EXPECT_TRUE(study.excluded.front().is_suspect) << "what is missing without a reason comes first";
}

TEST(Study, NamesAPointThatCannotBe) {
    Studied studied;
    studied.result.points[Studied::four].end_to_end->latency = example::timing(0.01, 120);
    const Study study = study_of(studied.result);
    EXPECT_THAT(why_aside(study, "gpt2-large batch 4 seq 1024 fp16"), Not(IsEmpty()));
    EXPECT_FALSE(rests_on(study, Studied::four));
}

TEST(Study, SaysNothingOfItsBaseWhereThatIsNoEvidence) {
    Studied studied;
    studied.result.points[Studied::base].conditions.throttle_reasons = {"hw_thermal_slowdown"};
    const Study study = study_of(studied.result);
    EXPECT_FALSE(study.base);
    EXPECT_FALSE(rests_on(study, Studied::base));
    EXPECT_THAT(study.changes, IsEmpty());
    EXPECT_THAT(study.elsewhere, IsEmpty());
}

TEST(Study, ALargerBatchThatIsNotCertainToBeFasterIsNoGain) {
    Studied studied;
    studied.result.points[Studied::four].end_to_end->latency = example::timing(4 * 3.68 * 0.9999, 120);
    studied.result.points[Studied::sixteen].end_to_end->latency = example::timing(16 * 3.68, 120);
    const Study study = study_of(studied.result);
    EXPECT_THAT(study.answers[1].findings.front().text, HasSubstr("No larger batch is certain to be faster"));
    for (const StudyChange& change : study.changes) EXPECT_THAT(change.what, Not(HasSubstr("Batch")));
}

TEST(Study, ChangesAreByWhatTheySave) {
    const Study study = study_of(Studied().result);
    EXPECT_LE(study.changes.size(), 3u);
    EXPECT_TRUE(std::ranges::is_sorted(study.changes, std::greater{},
                                       [](const StudyChange& change) { return change.saved.value; }));
    for (const StudyChange& change : study.changes) {
        EXPECT_FALSE(change.refuted_by.empty()) << change.what;
        EXPECT_FALSE(change.evidence.figures.empty()) << change.what;
        EXPECT_LE(change.saved.value, 1) << change.what;
    }
}

TEST(Study, OtherMachinesAreTheFastestFirstAndNotThisOne) {
    const Study study = study_of(Studied().result);
    ASSERT_FALSE(study.elsewhere.empty());
    EXPECT_TRUE(std::ranges::is_sorted(study.elsewhere, {}, [](const WhatIf& one) { return one.there_ms.value; }));
    for (const WhatIf& one : study.elsewhere) {
        EXPECT_THAT(one.target, Not(HasSubstr("NVIDIA H200")));
        EXPECT_THAT(one.target, HasSubstr("NVIDIA")) << "other makers' cannot run the program";
    }
}

TEST(Study, AResultWithoutAPlanIsNone) { EXPECT_THROW(study_of(example::result()), std::invalid_argument); }

TEST(Study, ItsPlanIsInResultJson) {
    const Studied studied;
    const Result again = parse_result(to_text(studied.result), "result.json");
    ASSERT_TRUE(again.study);
    ASSERT_EQ(again.study->points.size(), studied.result.study->points.size());
    for (std::size_t i = 0; i < again.study->points.size(); ++i) {
        EXPECT_EQ(again.study->points[i].axes, studied.result.study->points[i].axes);
        EXPECT_EQ(again.study->points[i].tasks, studied.result.study->points[i].tasks);
    }
    EXPECT_EQ(again.study->budget_s, 480);
}

TEST(Study, OfShardsWhatOneOfThemMeasuredWasNotLeftOut) {
    Studied first, second;
    first.result.study->points[Studied::sixteen].left_out = "it belongs to another shard";
    first.result.points.erase(first.result.points.begin() + Studied::sixteen);
    second.result.study->points[Studied::base].left_out = "it belongs to another shard";
    second.result.points.erase(second.result.points.begin() + Studied::base);
    const Result merged = merge_results({{"1", first.result}, {"2", second.result}});
    ASSERT_TRUE(merged.study);
    EXPECT_EQ(merged.study->points.size(), 5u);
    for (const PlannedPoint& point : merged.study->points) EXPECT_EQ(point.left_out, "");
    EXPECT_THAT(study_of(merged).excluded, IsEmpty());
}

TEST(Study, TheReportHasAPartForEachQuestionAndWhatFollows) {
    const Studied studied;
    const ExplainedResult explained(studied.result);
    const std::vector<Section> sections = section_called("study", {explained}).sections;
    std::vector<std::string> titles;
    for (const Section& section : sections) titles.push_back(section.title);
    for (const StudyTaskKind& task : study_tasks) EXPECT_THAT(titles, Contains(std::string(task.title)));
    for (const char* title : {"What to change", "If you had another GPU", "Points left aside"})
        EXPECT_THAT(titles, Contains(title));
}

}  // namespace
}  // namespace kbench
