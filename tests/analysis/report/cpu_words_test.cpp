// No text of a CPU's result speaks of what only a GPU has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/compare/what_if.h"
#include "analysis/machine/machine.h"
#include "analysis/report/render/render.h"
#include "analysis/report/what_if.h"
#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::IsEmpty;

/// What the result itself says, such as that no GPU was usable, is not of the report.
void forget_recorded_texts(Result& result) {
    result.warnings.clear();
    for (Point& point : result.points) point.reason.clear();
}

/// Where `text` names parts of a GPU, each with what stands around it.
std::vector<std::string> words_of_gpus(const std::string& text) {
    static const std::regex words(R"(\b(SMs?|multiprocessors?|warps?|GPUs?|NVML|[Tt]ensor cores?|power limit)\b)");
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), words), end; at != end; ++at) {
        const auto from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at->position() - 60));
        found.push_back(text.substr(from, 160));
    }
    return found;
}

void expect_no_words_of_gpus(Result result) {
    forget_recorded_texts(result);
    const ExplainedResult explained(result);
    EXPECT_THAT(words_of_gpus(write_terminal(explained, 4000)), IsEmpty());
    EXPECT_THAT(words_of_gpus(write_markdown(explained)), IsEmpty());
    const std::vector<NamedResult> runs{{"a", "a.json", result}, {"b", "b.json", result}};
    EXPECT_THAT(words_of_gpus(write_comparison(compare(runs, {}), CompareFormat::text, 5, 4000)), IsEmpty());
    const WhatIfMachine here = what_if_machine(result), there = what_if_machine(machine("xeon-emerald-rapids"));
    std::vector<CheckedWhatIf> expected;
    for (std::size_t i = 0; i < explained.points().size(); ++i)
        expected.push_back({what_if(explained.of(i), here, there), {}});
    EXPECT_THAT(words_of_gpus(render_terminal(what_if_document(expected), 4000)), IsEmpty());
}

class CpuWords : public testing::TestWithParam<const char*> {};

TEST_P(CpuWords, AreNotThoseOfGpus) {
    const Result result = example::committed_result(std::string(GetParam()) + "/result.json.gz");
    ASSERT_FALSE(result.points.empty());
    ASSERT_EQ(result.points.front().backend(), "cpu");
    expect_no_words_of_gpus(result);
}

INSTANTIATE_TEST_SUITE_P(Recorded, CpuWords,
                         testing::Values("h200-2026-11-21/cpu", "h200-2026-11-22/micro/cpu",
                                         "h200-2026-11-25/study-gpt2-xeon", "epyc-2026-11-24/study-gpt2",
                                         "epyc-2026-11-24/study-deepspeech2"));

/// Points of each bound that a CPU's figures can show.
TEST(WordsOfCpus, OfEveryBoundAreNotThoseOfGpus) {
    for (const Step& step : {Step{.us = 100, .kernels = 0, .compute = 0.9, .dram = 0.1, .unfused = 0.1},
                             Step{.us = 100, .kernels = 0, .compute = 0.1, .dram = 0.8, .unfused = 0.8},
                             Step{.us = 100, .kernels = 0, .compute = 0.01, .dram = 0.01, .unfused = 0.01},
                             Step{.us = 100, .kernels = 0, .compute = 0.2, .unfused = 0.2, .time_steps = 50}}) {
        Step uncounted = step;
        uncounted.counted = uncounted.units_counted = false;
        Result result = known::result_of({uncounted}, known::cpu_roofs());
        expect_no_words_of_gpus(std::move(result));
    }
}

TEST(WordsOfCpus, ChangesThatWouldHelpAreThoseOfACpu) {
    Result result = known::result_of(
        {Step{.us = 100, .kernels = 0, .compute = 0.9, .unfused = 0.1, .counted = false, .units_counted = false}},
        known::cpu_roofs());
    EXPECT_THAT(explain(result, result.points[0]).answer.back(), testing::HasSubstr("more cores, a higher clock"));
    result = known::result_of({Step{.op = "gemm", .us = 100, .compute = 0.9, .unfused = 0.1}});
    EXPECT_THAT(explain(result, result.points[0]).answer.back(), testing::HasSubstr("more SMs, a higher clock"));
    result.points[0].conditions.throttle_reasons = {"sw_power_cap"};
    EXPECT_THAT(explain(result, result.points[0]).answer.back(), testing::HasSubstr("more SMs, a higher power limit"));
}

}  // namespace
}  // namespace kbench
