// The readers of files.
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/machine/machine.h"
#include "analysis/program/program_point.h"
#include "analysis/report/render/render.h"
#include "analysis/report/scopes.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "analysis/result/scopes.h"
#include "bench/micro/cases.h"
#include "bench/plan/data/array_shape.h"
#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/npy.h"
#include "bench/plan/data/token_file.h"
#include "bench/plan/data/tokens.h"
#include "bench/profile/metric_sets.h"
#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/registry.h"
#include "profile/schedule.h"
#include "tests/fuzz/targets.h"

namespace kbench::fuzz {
namespace {

template <class Read>
void refusable(const Read& read) {
    try {
        read();
    } catch (const Error&) {  // one line and an exit code
    }
}

}  // namespace

/// What is read is explained and written, too, and what is written can be read.
void result(std::string_view input) {
    refusable([&] {
        const Result read = parse_result(std::string(input), "result.json");
        const std::string text = to_text(read);
        if (to_text(parse_result(text, "again")) != text) std::abort();
        const ExplainedResult explained(read);
        write_markdown(explained);
        write_terminal(explained, 80);
        write_html(explained);
    });
}

void config(std::string_view input) {
    refusable([&] {
        const ModelSpec spec = read_model(std::string(input), "config.json");
        for (const std::string& note : spec.notes)
            if (note.size() > 2000 || note.find('\n') != std::string::npos) std::abort();
        if (spec.configuration.empty()) std::abort();
        // Thousands of layers take a second each time: a few of the inputs will do.
        if (input.size() % 8 == 0) spec.build({});
    });
}

void machine(std::string_view input) {
    refusable([&] { parse_machine(std::string(input), "machine.json"); });
}

/// What is read becomes a point, with the same file as run without records, with names and with counters.
void program(std::string_view input) {
    refusable([&] {
        std::istringstream lines{std::string(input)};
        const ProgramFile file = read_program_file(lines, "records.1.jsonl");
        const ProgramRuns runs{{file}, {file}, {file}, {file}};
        GpuInfo gpu;
        gpu.compute_capability_major = 9;
        gpu.multiprocessors = 132;
        Result result;
        result.points = program_points(runs, {}, gpu).points;
        const std::string text = to_text(result);
        if (to_text(parse_result(text, "again")) != text) std::abort();
    });
}

/// Into a model of one weight, which is transposed where the file has it as nn.Linear does.
void safetensors(std::string_view input) {
    refusable([&] {
        Checkpoint file(as_file(input));
        Model model;
        model.name = "fuzzed";
        model.tensors.push_back({.name = "w", .role = Role::weights, .shape = {2, 3}});
        model.tensors.push_back({.name = "x", .shape = {1, 2}});
        model.tensors.push_back({.name = "y", .shape = {1, 3}});
        model.ops.push_back({Gemm{1, 3, 2}, "product", {1, 0}, {2}});
        file.check(model);
        std::vector<float> values(2 * 3);
        file.load(model.tensors.front(), DataType::fp32, values.data(), 3);
    });
}

/// Reads the index of shards that do not exist.
void index(std::string_view input) {
    refusable([&] { parse_checkpoint_index(std::string(input), "/nowhere/model.safetensors.index.json"); });
}

void npy(std::string_view input) {
    constexpr std::int64_t wanted[] = {2, 1, 3};
    refusable([&] { require_shape("x.npy", "x", read_npy_integers(as_file(input)).shape, wanted); });
    refusable([&] { require_shape("x.npy", "x", read_npy_floats(as_file(input)).shape, wanted); });
}

void tokens(std::string_view input) {
    refusable([&] { read_tokens(as_file(input), 2, 8, 1000); });
    refusable([&] { read_numbers_of_rows(as_file(input), 2, 1000, "length"); });
    refusable([&] { read_token_stream(as_file(input), 1, 1000); });
    refusable([&] { read_integers(as_file(input).string() + ":uint16", "token"); });
}

/// What is read is written, too, and what is written can be read; labels have globs of their own.
void schedule(std::string_view input) {
    refusable([&] {
        const embedded::Schedule read = embedded::parse_schedule(input, "prof.schedule");
        const std::string text = embedded::schedule_text(read);
        if (embedded::schedule_text(embedded::parse_schedule(text, "again")) != text) std::abort();
    });
    const std::string_view label = input.substr(0, 200);
    if (!embedded::matches(embedded::glob_of(label), label)) std::abort();
}

void scopes(std::string_view input) {
    refusable([&] {
        const ScopeProfile read = parse_scope_profile(std::string(input), "prof.json");
        const std::vector<ScopeRun> runs{{"a", {read}}, {"b", {read, read}}};
        render_terminal(scopes_document(runs), 80);
        render_markdown(scopes_document(runs));
        render_html(scopes_document(runs));
        scopes_json(runs);
    });
}

void shapes(std::string_view input) {
    refusable([&] { parse_problems(input, "shapes.txt"); });
}

void metrics(std::string_view input) {
    refusable([&] { MetricTable::parse(input, "metrics.txt"); });
}

}  // namespace kbench::fuzz
