// Reports, tables and traces of a program: what they have, and what they do not say of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "analysis/table/table_query.h"
#include "tests/analysis/example_program.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result host_bound() { return example::program({.host_wait_us = 420, .records_us = 100}); }

Result committed_as_program() {
    Result result = example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz");
    result.points.front() = example::as_program(result.points.front(), 0.6);
    return result;
}

TEST(ProgramReport, MatchesTheGoldenFiles) {
    expect_golden("screen_program_100.txt", write_screen(host_bound(), 100));
    expect_golden("terminal_program_100.txt", write_terminal(host_bound(), 100));
    expect_golden("report_program.md", write_markdown(host_bound()));
}

TEST(ProgramReport, DoesNotCallMissingWhatAProgramCannotHave) {
    for (const Result& result : {host_bound(), example::program({.is_named = false, .has_roofs = false}),
                                 example::program({.overlap_us = 60}), committed_as_program()})
        for (const std::string& text :
             {write_screen(result, 100), write_terminal(result, 100), write_markdown(result), write_html(result)})
            for (const char* wrong : {"turned off", "parameters, ", "CUDA graph's", "latency (CUDA graph)", "fewer SMs",
                                      "no reason recorded", "forwards:", "calibrated on chains"})
                EXPECT_THAT(text, Not(HasSubstr(wrong)));
}

TEST(ProgramReport, SaysHowItRan) {
    Result result = host_bound();
    result.points.front().program->processes = 2;
    result.points.front().program->notes = {"sitecustomize of the environment was replaced"};
    EXPECT_THAT(write_markdown(result),
                AllOf(HasSubstr("20 recorded, each of 8 launches: 8 kernels, 2 copies and fills"),
                      HasSubstr("10.6 %: 940 us without, 1.04 ms with them"), HasSubstr("| processes | 2 |"),
                      HasSubstr("sitecustomize of the environment was replaced")));
    result.points.front().program->iterations_unavailable = "no sequence of kernels repeats";
    EXPECT_THAT(write_markdown(result), HasSubstr("no sequence of kernels repeats"));
}

TEST(ProgramReport, ShowsKernelsByNameWhereNoLayerIsKnown) {
    const std::string text = write_screen(example::program({.is_named = false}), 100);
    EXPECT_THAT(text, AllOf(HasSubstr("kernel by time"), HasSubstr("vectorized_layer_norm_kernel<Half>"),
                            Not(HasSubstr("layer by time"))));
}

TEST(ProgramReport, HasNoRoofTimesOfUnknownWork) {
    EXPECT_THAT(write_markdown(example::program({.is_named = false})),
                HasSubstr("of no op the shape is known, and DRAM was not counted"));
    EXPECT_THAT(write_markdown(example::program({})), HasSubstr("FLOPs and bytes are not known"));
}

std::string cell_of(const Result& result, std::string_view level, const std::string& column, std::size_t row) {
    const std::vector<ResultFile> files{{"program.json", result}};
    TableQuery query;
    query.level = &find_level(level);
    query.columns = {column};
    const QueriedTable table = query_table(files, query);
    return shown(table.columns.front(), table.columns.front().value(table.rows.at(row)));
}

TEST(ProgramTable, HasAllColumnsOfPyProf) {
    Result result = example::program({});
    StepResult& step = result.points.front().steps[3];
    step.direction = Direction::dgrad;
    step.call->forward_sequence = 17;
    step.counters = {{"tensor_pipe_active", 60.0}};
    const std::pair<const char*, const char*> cells[] = {{"idx", "3"},
                                                         {"seq", "103"},
                                                         {"altseq", "17"},
                                                         {"tid", "4711"},
                                                         {"layer", "h.0.attn.c_attn"},
                                                         {"trace", "bench.py:40"},
                                                         {"dir", "dgrad"},
                                                         {"sub", "0"},
                                                         {"mod", "Conv1D"},
                                                         {"op", "aten::addmm"},
                                                         {"kernel", "sm90_xmma_gemm_f16f16_f16f32_tn"},
                                                         {"params", "[[3840], [1024, 1280], [1280, 3840]]"},
                                                         {"sil", "90000"},
                                                         {"tc", "1"},
                                                         {"device", "0"},
                                                         {"stream", "7"},
                                                         {"grid", "264,1,1"},
                                                         {"block", "128,1,1"},
                                                         {"flops", "10066329600"},
                                                         {"bytes", "20316160"}};
    for (const auto& [column, value] : cells) EXPECT_EQ(cell_of(result, "kernel", column, 3), value) << column;
}

TEST(ProgramTable, HasARowForACopyWithoutBlocks) {
    const Result result = example::program({});
    EXPECT_EQ(cell_of(result, "kernel", "kernel", 0), "copy HtoD, 4.20 MB, pageable");
    EXPECT_EQ(cell_of(result, "kernel", "kernel", 1), "fill, 8.19 kB");
    for (const char* column : {"grid", "block", "regs", "smem_static", "cluster", "occ_theory", "waves", "params"})
        EXPECT_EQ(cell_of(result, "kernel", column, 0), "na") << column;
    EXPECT_EQ(cell_of(result, "kernel", "bytes", 0), "4200000");
    EXPECT_EQ(cell_of(result, "kernel", "moved_bytes", 0), "4200000");
    EXPECT_EQ(cell_of(result, "kernel", "moved_bytes", 2), "na");
}

TEST(ProgramTable, DoesNotKnowTheWorkOfAnUnknownOp) {
    const Result result = example::program({});
    EXPECT_EQ(cell_of(result, "step", "flops", 2), "na");
    EXPECT_EQ(cell_of(result, "step", "gb_per_s", 2), "na");
    EXPECT_EQ(cell_of(result, "step", "calls", 2), "aten::layer_norm > aten::native_layer_norm");
}

TEST(ProgramTable, SumsWaitsForTheHost) {
    const Result result = example::program({.host_wait_us = 420});
    EXPECT_EQ(cell_of(result, "kernel", "host_wait_us", 3), "42.000");
    EXPECT_EQ(cell_of(result, "point", "host_wait_us", 0), "420.000");
    EXPECT_EQ(cell_of(example::profiled_result(), "kernel", "host_wait_us", 0), "na");
}

TEST(ProgramTable, GroupsByTheFrameworksCalls) {
    EXPECT_EQ(cell_of(example::program({}), "op", "op", 2), "aten::layer_norm");
    EXPECT_EQ(cell_of(example::program({}), "op", "steps", 3), "6");
}

/// The slices of one track of the trace, in order.
std::vector<nlohmann::json> slices_of(const nlohmann::json& trace, const std::string& track) {
    std::vector<nlohmann::json> slices;
    int id = 0;
    for (const nlohmann::json& event : trace["traceEvents"]) {
        if (event["name"] == "thread_name" && event["args"]["name"] == track) id = event["tid"];
        if (event["ph"] == "X" && event["tid"] == id && id > 0) slices.push_back(event);
    }
    return slices;
}

TEST(ProgramTrace, NamesTheGapsInWhichTheGpuWaits) {
    const nlohmann::json trace = nlohmann::json::parse(write_trace(host_bound()));
    const auto waits = slices_of(trace, "host wait"), kernels = slices_of(trace, "kernel, stream 7");
    ASSERT_EQ(waits.size(), 10u);
    ASSERT_EQ(kernels.size(), 10u);
    EXPECT_EQ(waits[1]["name"], "GPU waits for the host");
    EXPECT_NEAR(waits[1]["ts"].get<double>(), kernels[0]["ts"].get<double>() + kernels[0]["dur"].get<double>(), 2e-3);
    EXPECT_NEAR(waits[1]["dur"].get<double>(), 42, 2e-3);
    EXPECT_LE(waits[1]["ts"].get<double>() + waits[1]["dur"].get<double>(), kernels[1]["ts"].get<double>());
    EXPECT_EQ(kernels[0]["args"]["bytes"], 4200000);
    const auto calls = slices_of(trace, "step");
    ASSERT_EQ(calls.size(), 10u);
    EXPECT_EQ(calls[3]["name"], "aten::addmm");
    EXPECT_EQ(calls[3]["args"]["call"]["line"], "bench.py:40");
    EXPECT_FALSE(slices_of(trace, "layer").empty());
    EXPECT_TRUE(slices_of(nlohmann::json::parse(write_trace(example::program({}))), "host wait").empty());
}

TEST(ProgramTrace, HasATrackForEachStream) {
    const nlohmann::json trace = nlohmann::json::parse(write_trace(example::program({.overlap_us = 60})));
    EXPECT_EQ(slices_of(trace, "kernel, stream 7").size(), 9u);
    EXPECT_EQ(slices_of(trace, "kernel, stream 8").size(), 1u);
    EXPECT_THAT(trace["otherData"]["points"][0]["times"].get<std::string>(), HasSubstr("drawn one after another"));
}

TEST(ProgramJson, IsReadAsItWasWritten) {
    const std::string text = to_text(host_bound());
    const Result read = parse_result(text, "result.json");
    EXPECT_EQ(read.points.front().program, host_bound().points.front().program);
    EXPECT_EQ(read.points.front().steps[3].call, host_bound().points.front().steps[3].call);
    EXPECT_EQ(read.points.front().steps[0].kernels[0].moved_bytes, 4200000);
    EXPECT_EQ(read.points.front().steps[0].kernels[0].host_wait_us, 42);
    EXPECT_EQ(to_text(read), text);
    const Result own = parse_result(to_text(example::profiled_result()), "result.json");
    EXPECT_FALSE(own.points.front().program);
    EXPECT_FALSE(own.points.front().steps.front().call);
    EXPECT_FALSE(own.points.front().steps.front().kernels.front().moved_bytes);
}

}  // namespace
}  // namespace kbench
