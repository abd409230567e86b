// From figures that carry no conclusion none is drawn, wherever it would be told; the figures stay.
#include "analysis/explain/conclusions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/compare/compare.h"
#include "analysis/compare/what_if.h"
#include "analysis/explain/explain.h"
#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "analysis/study/study.h"
#include "analysis/table/table.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A product at 90 % of its roof, a copy at 80 % of DRAM's; `beyond_us` that no step explains.
Result busy(double beyond_us = 0) {
    return known::result_of({Step{.op = "gemm", .us = 400, .compute = 0.9, .dram = 0.1, .unfused = 0.1},
                             Step{.us = 100, .dram = 0.8, .unfused = 0.8}},
                            known::gpu_roofs(), beyond_us);
}

std::vector<std::string> missing(const Result& result) {
    return missing_ground(result.points[0], known::breakdown_of(result));
}

TEST(Conclusions, NeedTenIndependentSamples) {
    Result result = busy();
    EXPECT_THAT(missing(result), IsEmpty());
    Summary& ms = result.points[0].end_to_end->latency.summary_ms;
    ms.n = 9;
    EXPECT_THAT(missing(result), ElementsAre(AllOf(HasSubstr("there are 9 samples, and 10 independent ones are needed"),
                                                   HasSubstr("--time-budget"))));
    ms.n = 1;
    EXPECT_THAT(missing(result), ElementsAre(HasSubstr("there is 1 sample,")));
    ms.n = 10;
    EXPECT_THAT(missing(result), IsEmpty()) << "of files that did not record how many are independent";
    ms.n = 630;
    ms.independent = 9;
    EXPECT_THAT(missing(result), ElementsAre(HasSubstr("of 630 samples 9 are independent")));
    ms.independent = 10;
    EXPECT_THAT(missing(result), IsEmpty());
    ms.independent = 9.9;
    EXPECT_THAT(missing(result), ElementsAre(HasSubstr("of 630 samples 9 are independent")));
}

TEST(Conclusions, NeedABreakdownThatExplainsNineTenths) {
    EXPECT_THAT(missing(busy(55)), IsEmpty()) << "of 555 us";
    EXPECT_THAT(missing(busy(56)), ElementsAre(HasSubstr("drift and residual are 10 % of the time")));
    EXPECT_THAT(missing(busy(-60)), ElementsAre(HasSubstr("drift and residual are 14 % of the time")));
    Result drifted = busy();
    drifted.points[0].activity.unprofiled_ms = 0.5 * 0.75;  // the residual is the other way
    EXPECT_THAT(missing(drifted), ElementsAre(HasSubstr("drift and residual are 50 % of the time")))
        << "they cannot cancel";
}

TEST(Conclusions, ADriftBeyondTwoPercentIsAWarning) {
    Point point = busy().points[0];
    EXPECT_EQ(drift_warning(point), std::nullopt) << "nothing was timed beside it";
    point.activity.unprofiled_ms = 0.5 / 1.019;
    EXPECT_EQ(drift_warning(point), std::nullopt);
    point.activity.unprofiled_ms = 0.5 / 1.27;
    EXPECT_THAT(drift_warning(point).value_or(""), HasSubstr("the timing run took 27.0 % longer than the runs whose"));
    point.activity.unprofiled_ms = 0.5 / 0.15;
    EXPECT_THAT(drift_warning(point).value_or(""), HasSubstr("the timing run took 85.0 % shorter than the runs whose"));
}

TEST(Conclusions, NeedTheCpuTimeThatTheProcessWanted) {
    Result result = busy();
    CpuShare& share = result.points[0].conditions.cpu_share.emplace();
    share.waited_share = Quantity::measured(0.04);
    EXPECT_THAT(missing(result), IsEmpty());
    share.throttled_share = Quantity::measured(0.8);
    EXPECT_THAT(missing(result), ElementsAre(HasSubstr("the process did not get 80 % of the CPU time that it wanted")));
}

TEST(Conclusions, AStarvedRunIsNoRegression) {
    std::vector<NamedResult> runs{{"a", "a.json", busy()}, {"b", "b.json", busy(300)}};
    for (NamedResult& run : runs) {
        Summary& ms = run.result.points[0].end_to_end->latency.summary_ms;
        ms.ci_low = ms.ci_high = ms.median;
    }
    CompareOptions options;
    options.fail_above = 0.03;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::regression);
    runs[1].result.points[0].conditions.cpu_share.emplace().steal_share = Quantity::measured(0.3);
    const Comparison starved = compare(runs, options);
    EXPECT_EQ(starved.pairs[0].points[0].change, Change::cannot_tell);
    EXPECT_THAT(starved.regressions, IsEmpty());
    EXPECT_THAT(write_comparison(starved, CompareFormat::text, 10, 400),
                HasSubstr("cannot tell, in the other the process did not get 30 %"));
}

// ---- faults that are planted into a recorded run
// ---------------------------------------------------------------------

Result recorded(const std::string& name) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/results/" + name + "/result.json.gz";
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return parse_result(bytes, path);
}

struct Fault {
    std::string name;
    friend void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
    std::function<void(Point&)> plant;
    std::string found;
};

class WithoutGround : public testing::TestWithParam<Fault> {};

/// Lines that say what is a bottleneck, or is none, or would help: verdicts by their names, and sentences.
std::vector<std::string> conclusions_in(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("cannot tell") != line.npos || line.find("unknown") != line.npos) continue;
        for (const char* words :
             {"bandwidth-bound", "compute-bound", "latency-bound", "launch-bound", "occupancy-limited",
              "is not the bottleneck", "are not its bottleneck", "is its bottleneck", "SMs are the bottleneck",
              "its bottleneck is", "not bandwidth", "would shorten", "would not", "no single bottleneck",
              "evicts from the cache", "agrees", "contradicts", "follow "})
            if (line.find(words) != line.npos) {
                found.push_back(line.substr(0, 200));
                break;
            }
    }
    return found;
}

void drop_rules(std::vector<Section>& sections) {
    std::erase_if(sections, [](const Section& section) { return section.title == "The rules, in their order"; });
    for (Section& section : sections) drop_rules(section.sections);
}

/// What the page's script draws, without the table of the rules and without the scripts themselves.
std::string page_data(const ExplainedResult& explained) {
    Document document = report_of(explained);
    drop_rules(document.sections);
    return document_json(document).dump(0);
}

/// In a page each cell is a line. Each point has one table of hypotheses, none of which is confirmed or rejected.
std::vector<std::string> conclusions_in_page(const ExplainedResult& explained, const std::string& page) {
    std::vector<std::string> found = conclusions_in(page);
    for (const char* name :
         {"bandwidth-bound", "compute-bound", "latency-bound", "launch-bound", "occupancy-limited"}) {
        const auto is_cell = [&](const std::string& line) { return line.starts_with("\"" + std::string(name) + "\""); };
        if (std::ranges::count_if(found, is_cell) <= std::ssize(explained.points())) std::erase_if(found, is_cell);
    }
    for (const char* finding : {"\"confirmed\"", "\"rejected\""})
        if (page.find(finding) != page.npos) found.emplace_back(finding);
    return found;
}

TEST_P(WithoutGround, NothingIsConcludedAnywhere) {
    Result result = recorded("h200-2026-11-23/fp32");
    const Result sound = result;
    ASSERT_THAT(conclusions_in(write_terminal(ExplainedResult(sound), 4000)), Not(IsEmpty()));
    GetParam().plant(result.points[0]);
    const ExplainedResult explained(result);
    const Explanation& explanation = explained.of(0);
    EXPECT_FALSE(explanation.concludes());
    EXPECT_THAT(explanation.answer.back(), AllOf(HasSubstr("No conclusion is drawn"), HasSubstr(GetParam().found)));
    EXPECT_EQ(explanation.verdicts.model.bound, Bound::not_identifiable);
    EXPECT_EQ(explanation.verdicts.model.rule, "no-ground");
    for (const Verdict& verdict : explanation.verdicts.steps) EXPECT_EQ(verdict.bound, Bound::not_identifiable);
    for (const Verdict& verdict : explanation.verdicts.layers) EXPECT_EQ(verdict.bound, Bound::not_identifiable);
    for (const Hypothesis& hypothesis : explanation.verdicts.model.hypotheses)
        EXPECT_EQ(hypothesis.finding, Finding::not_identifiable);

    const std::string terminal = write_terminal(explained, 4000);
    EXPECT_THAT(terminal, HasSubstr("No conclusion is drawn"));
    EXPECT_THAT(terminal, HasSubstr("end to end")) << "figures stay";
    EXPECT_THAT(conclusions_in(terminal), IsEmpty());
    const std::string markdown = write_markdown(explained);
    EXPECT_THAT(markdown, HasSubstr("No conclusion is drawn"));
    EXPECT_THAT(conclusions_in(markdown), IsEmpty());
    const std::string page = page_data(explained);
    EXPECT_THAT(page, HasSubstr("No conclusion is drawn"));
    EXPECT_THAT(conclusions_in_page(explained, page), IsEmpty());
    EXPECT_THAT(conclusions_in(write_trace(explained)), IsEmpty());

    CompareOptions options;
    using Sides = std::pair<const Result*, const Result*>;
    for (const auto& [a, b] : {Sides{&sound, &result}, Sides{&result, &sound}}) {
        const std::vector<NamedResult> runs{{"one", "one.json", *a}, {"two", "two.json", *b}};
        const Comparison compared = compare(runs, options);
        EXPECT_EQ(compared.pairs[0].points[0].naive.fit, Fit::untested);
        const std::string text = write_comparison(compared, CompareFormat::text, 100, 4000);
        EXPECT_THAT(text, AllOf(HasSubstr("No conclusion is drawn"), HasSubstr(GetParam().found)));
        // The sound run keeps its own verdicts.
        const std::string evidence = compared.pairs[0].points[0].evidence.front().text;
        EXPECT_THAT(conclusions_in(evidence), IsEmpty());
        EXPECT_EQ(compared.pairs[0].points[0].evidence.size(), 1u);
    }
    const WhatIf expected = what_if(explanation, what_if_machine(result), what_if_machine(machines().front()));
    EXPECT_THAT(expected.unavailable, HasSubstr(GetParam().found));
}

TEST_P(WithoutGround, AStudyTellsItsFiguresAlone) {
    Result result = recorded("epyc-2026-11-24/study-deepspeech2");
    for (Point& point : result.points)
        if (point.end_to_end) GetParam().plant(point);
    const ExplainedResult explained(result);
    const Study study = study_of(explained);
    EXPECT_THAT(study.changes, IsEmpty());
    EXPECT_THAT(study.elsewhere, IsEmpty());
    for (const std::string& text : {write_terminal(explained, 4000), write_markdown(explained)})
        EXPECT_THAT(conclusions_in(text), IsEmpty());
    EXPECT_THAT(conclusions_in_page(explained, page_data(explained)), IsEmpty());
    EXPECT_THAT(write_markdown(explained), testing::AnyOf(HasSubstr("No conclusion"), HasSubstr("is no evidence")));
}

INSTANTIATE_TEST_SUITE_P(Planted, WithoutGround,
                         testing::Values(Fault{"FewSamples",
                                               [](Point& point) {
                                                   Summary& ms = point.end_to_end->latency.summary_ms;
                                                   ms.independent = 9;
                                               },
                                               "9 are independent"},
                                         Fault{"OneSample",
                                               [](Point& point) {
                                                   Summary& ms = point.end_to_end->latency.summary_ms;
                                                   ms.n = 1;
                                                   ms.independent = 1;
                                               },
                                               "there is 1 sample"},
                                         Fault{"Drift",
                                               [](Point& point) {
                                                   Summary& ms = point.end_to_end->latency.summary_ms;
                                                   point.activity.unprofiled_ms = 0.7 * ms.median;
                                               },
                                               "drift and residual are"},
                                         Fault{"Starved",
                                               [](Point& point) {
                                                   point.conditions.cpu_share.emplace().waited_share =
                                                       Quantity::measured(0.5);
                                               },
                                               "the process did not get 50 %"}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kbench
