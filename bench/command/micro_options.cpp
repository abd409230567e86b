// The table of options of `kbench micro`, and the problems that they name.
#include "bench/command/micro_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "bench/command/option_values.h"
#include "bench/command/output.h"
#include "bench/micro/columns.h"
#include "bench/plan/data/read_file.h"
#include "kbench/axes.h"
#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/ops/table.h"
#include "models/registry.h"

namespace kbench {
namespace {

using Request = MicroRequest;

using Options = std::vector<OptionOf<Request>>;

/// Sizes for attention alone, as no model says its shapes.
constexpr std::int64_t usual_attention_batch = 1, usual_attention_seq = 1024;
bool is_of_attention(std::string_view axis) { return axis == "batch" || axis == "seq"; }

/// The values on an axis, always a list: of words also all.
std::vector<AxisValue> listed_values(Axis axis, const std::string& text) {
    axis.sweeps = true;
    axis.takes_max = false;
    return axis_values(axis, text);
}

/// Where a model's ops may be asked for.
OptionOf<Request> axis_option(const Axis& axis) {
    const bool has_words = axis.kind == AxisKind::word && !axis.selects_phase;
    return {
        fmt::format("--{}", axis.name), fmt::format("{},...", axis.option),
        has_words    ? "all"
        : axis.usual ? text_of(*axis.usual)
                     : "the model's",
        fmt::format("for a model's ops{}: {}", is_of_attention(axis.name) ? " or attention" : "", axis.what),
        [&axis](Request& r, const std::string& text) { r.axes[std::string(axis.name)] = listed_values(axis, text); }};
}

const OptionOf<Request> table[] = {
    {"--op", "OP,...", "all", "which ops (`kbench list ops`); one that the model lacks has its shape from that list",
     [](Request& r, const std::string& text) { r.ops = names("--op", text); }},
    {"--shape", "SHAPE,...", "", "shapes of the one op of --op, such as m1024n3840k1280 or m1024n5120k1280+bias+gelu",
     [](Request& r, const std::string& text) { r.shapes = names("--shape", text); }},
    {"--shapes", "FILE", "",
     "problems from a file: one a line, op, shape and, if not fwd, a direction; # begins a comment",
     [](Request& r, const std::string& text) { r.shapes_file = text; }},
    {"--shapes-of", "MODEL", "gpt2-large", "the distinct ops of a model (`kbench list models`)",
     [](Request& r, const std::string& text) { r.model = text; }},
    {"--suite", "NAME", "", "a published collection of shapes: deepbench",
     [](Request& r, const std::string& text) { r.suite = text; }},
    {"--heads", "N,...", "",
     "heads of attention, with --head-size: shapes from --batch, --heads, --seq (else 1024), --head-size",
     [](Request& r, const std::string& text) { r.heads = whole_numbers("--heads", text); }},
    {"--head-size", "N,...", "", "columns of a head, see --heads",
     [](Request& r, const std::string& text) { r.head_sizes = whole_numbers("--head-size", text); }},
    {"--precision", "P,...", "all", "fp16, bf16, tf32, fp32, fp64 or all",
     [](Request& r, const std::string& text) { r.precisions = parse_precisions(text); }},
    {"--provider", "NAME,...", "all that compute the op", "who computes (`kbench list providers`)",
     [](Request& r, const std::string& text) { r.providers = names("--provider", text); }},
    {"--cache", "STATE,...", "cold,hot", "cold: operands lie in no cache; hot: as the run before left them",
     [](Request& r, const std::string& text) {
         r.caches.clear();
         for (const std::string& part : split(text)) {
             const std::string state = word("--cache", part, cache_state_names);
             r.caches.push_back(
                 static_cast<CacheState>(std::ranges::find(cache_state_names, state) - std::begin(cache_state_names)));
         }
         if (r.caches.empty()) throw UsageError("--cache '': must be cold, hot or both");
     }},
    {"--direction", "D,...", "fwd",
     "what to compute of each op that has it: fwd, bwd, or a GEMM's gradients dgrad (of its input) and wgrad (of its weight)",
     [](Request& r, const std::string& text) {
         r.directions.clear();
         for (const std::string& part : split(text)) {
             const std::string direction = word("--direction", part, direction_names);
             r.directions.push_back(
                 static_cast<Direction>(std::ranges::find(direction_names, direction) - std::begin(direction_names)));
         }
         if (r.directions.empty()) throw UsageError("--direction '': must be of fwd, bwd, dgrad, wgrad");
     }},
    backend_option<Request>(),
    device_option<Request>(),
    sms_option<Request>(),
    threads_option<Request>(),
    {"--metrics", "NAME,...", "", "hardware metrics as further columns, by kbench's name or the chip's own",
     [](Request& r, const std::string& text) {
         r.run.counters.metrics = names("--metrics", text);
         r.run.counters.required = true;
     }},
    {"--counters", "SET,...", "core",
     "hardware counters to read: none, core, full or sets of `kbench list metrics`; or samples, CUPTI's PC sampling",
     [](Request& r, const std::string& text) { set_counters(r.run.counters, text); }},
    {"--ceilings", "WHICH", "auto", "the machine's roofs: auto (remembered, else measured), measure or none",
     [](Request& r, const std::string& text) { r.ceilings.policy = parse_ceiling_policy(text); }},
    {"--time-budget", "TIME", "1s", "for the samples of a benchmark, converged or not; twenty are taken in any case",
     [](Request& r, const std::string& text) { r.run.sampler.time_budget_s = seconds("--time-budget", text, "1ms"); }},
    {"--seed", "N", "1", "seed of random operands",
     [](Request& r, const std::string& text) {
         r.run.seed = number<std::uint64_t>("--seed", text, 0, "a whole number");
     }},
    {"--out", "DIR", "kbench-runs/<time>-micro", "where result.json goes",
     [](Request& r, const std::string& text) { r.out = text; }},
    {"--compress", "", "", "write result.json.gz, a tenth of the size; every command reads it like result.json",
     [](MicroRequest& r, const std::string&) { r.compress = true; }},
    quiet_option<Request>(),
    {"--no-verify", "", "", "skip the check against the reference; recorded in the result",
     [](Request& r, const std::string&) { r.run.verify = false; }},
    {"--retune", "", "", "measure GEMM algorithms again instead of using the remembered ones",
     [](Request& r, const std::string&) { r.retune = true; }},
};

/// The axes' options stand behind those that say where shapes come from.
constexpr std::ptrdiff_t before_axes = 5;

bool is_benchmarks(const std::string& argument) {
    return argument.starts_with("--benchmark_") || argument.starts_with("--v=");
}

/// Google Benchmark's own option for the time that a benchmark is to take; kbench samples for as long.
constexpr std::string_view min_time = "--benchmark_min_time=";

double parse_min_time(const std::string& argument) {
    return seconds("--benchmark_min_time", argument.substr(min_time.size()), "1ns");
}

/// What Google Benchmark would answer with its help, or with nonsense, and exit code 0.
void check_benchmark_option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) return;
    const std::string option = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (option == "--benchmark_format" || option == "--benchmark_out_format")
        word(option, value, {"console", "json", "csv"});
    else if (option == "--benchmark_time_unit")
        word(option, value, {"ns", "us", "ms", "s"});
    else if (option == "--benchmark_repetitions")
        number<int>(option, value, 1, "a whole number");
    else if (option == "--benchmark_out")
        check_can_write(option, value);
}

constexpr std::string_view out_file = "--benchmark_out=";

/// Throws UsageError where Google Benchmark's file would be written over the result, or over the shapes.
void check_out_file(const Request& r, const std::vector<std::string>& benchmark_arguments) {
    for (const std::string& argument : benchmark_arguments) {
        if (!argument.starts_with(out_file)) continue;
        const std::string file = argument.substr(out_file.size());
        if (!r.out.empty() && is_written_into(r.out, file))
            throw UsageError(fmt::format("{}: the run itself writes there; choose another name", argument));
        if (!r.shapes_file.empty() && is_same_file(file, r.shapes_file))
            throw UsageError(fmt::format("{}: is the file of --shapes too; give each its own", argument));
    }
}

AskedProblem problem_of(const std::string& op, const std::string& shape, Direction direction = Direction::fwd) {
    return {op, shape, parse_problem(op, shape, direction)};
}

std::vector<AskedProblem> attention_problems(const Request& request) {
    if (request.heads.empty() || request.head_sizes.empty())
        throw UsageError("--heads and --head-size belong together: give both");
    if (request.ops.empty()) throw UsageError("--heads is of attention: name the op, as in --op attention");
    std::vector<AskedProblem> problems;
    const auto values = [&](std::string_view axis, std::int64_t usual) {
        const auto asked = request.axes.find(axis);
        return asked == request.axes.end() ? std::vector<AxisValue>{usual} : asked->second;
    };
    for (const std::string& op : request.ops)
        for (const AxisValue& batch : values("batch", usual_attention_batch))
            for (const std::int64_t heads : request.heads)
                for (const AxisValue& seq : values("seq", usual_attention_seq))
                    for (const std::int64_t size : request.head_sizes)
                        problems.push_back(
                            problem_of(op, fmt::format("b{}h{}s{}d{}", text_of(batch), heads, text_of(seq), size)));
    return problems;
}

void check_sources(const Request& r) {
    std::vector<std::string> sources;
    if (!r.shapes.empty()) sources.emplace_back("--shape");
    if (!r.shapes_file.empty()) sources.emplace_back("--shapes");
    if (!r.model.empty()) sources.emplace_back("--shapes-of");
    if (!r.suite.empty()) sources.emplace_back("--suite");
    if (!r.heads.empty() || !r.head_sizes.empty()) sources.emplace_back("--heads");
    if (sources.size() > 1)
        throw UsageError(fmt::format("{} exclude each other: give one", fmt::join(sources, " and ")));
    if (sources.empty() || sources.front() == "--shapes-of") return;
    for (const auto& [axis, values] : r.axes)
        if (sources.front() != "--heads" || !is_of_attention(axis))
            throw UsageError(
                fmt::format("--{}: is of a model's ops, and {} says all of a shape", axis, sources.front()));
}

}  // namespace

std::span<const OptionOf<MicroRequest>> micro_options() {
    static const Options all = [] {
        Options options(std::begin(table), std::begin(table) + before_axes);
        for (const Axis* axis : axes_in_order())
            if (is_of_shapes(*axis)) options.push_back(axis_option(*axis));
        options.insert(options.end(), std::begin(table) + before_axes, std::end(table));
        return options;
    }();
    return all;
}

std::string micro_markdown() {
    std::string text =
        "# kbench micro\n\nWritten from the tables in bench/micro/ by a test; `kbench micro --help` says the same. How to read and use it: [microbenchmarks](microbenchmarks.md).\n\n    kbench micro [options] [--benchmark_...]\n\n" +
        markdown_of(micro_options()) +
        "\nEvery option of Google Benchmark (`--benchmark_filter`, `--benchmark_format`, `--benchmark_out`, `--benchmark_repetitions`, ...) works.\n\n## Columns\n\n| column | unit | meaning |\n|---|---|---|\n";
    for (const MicroColumn& column : micro_columns())
        text += fmt::format("| `{}` | {} | {} |\n", column.name, column.unit, column.what);
    return text;
}

namespace {

/// What a request names: forward problems, but for lines of a file or a suite that name another direction.
std::vector<AskedProblem> named_problems(const MicroRequest& request) {
    if (!request.heads.empty() || !request.head_sizes.empty()) return attention_problems(request);
    std::vector<AskedProblem> problems;
    if (!request.shapes.empty()) {
        if (request.ops.size() != 1)
            throw UsageError("--shape is of one op: name it, as in --op gemm --shape m1024n3840k1280");
        for (const std::string& shape : request.shapes) problems.push_back(problem_of(request.ops.front(), shape));
        return problems;
    }
    if (!request.shapes_file.empty())
        problems = parse_problems(read_whole_file(request.shapes_file), request.shapes_file);
    else if (!request.suite.empty())
        problems = suite_problems(request.suite);
    else
        problems = model_problems(request.model.empty() ? usual_model().name : request.model, request.axes,
                                  !request.ops.empty());
    if (request.ops.empty()) return problems;
    std::vector<std::string> known;
    for (const AskedProblem& p : problems)
        if (std::ranges::find(known, p.op) == known.end()) known.push_back(p.op);
    const bool nothing_says_shapes =
        request.shapes_file.empty() && request.suite.empty() && request.model.empty() && request.axes.empty();
    for (const std::string& op : request.ops) {
        if (std::ranges::find(known, op) != known.end()) continue;
        const OpKind& kind = require_op_kind(op, fmt::format("--op {}: ", op));
        if (!nothing_says_shapes)
            throw UsageError(fmt::format("--op '{}': there is none here; {}", op, nearest_name(op, known)));
        problems.push_back(problem_of(op, std::string(example_shape(kind))));
    }
    std::erase_if(problems,
                  [&](const AskedProblem& p) { return std::ranges::find(request.ops, p.op) == request.ops.end(); });
    return problems;
}

/// Each problem in every direction of `directions` that its op has; one that names its own direction stands for that
/// alone. Without `directions` all problems as they are named. Throws UsageError for an op that has none of them, and
/// for a direction that none has.
std::vector<AskedProblem> in_directions(const std::vector<AskedProblem>& problems,
                                        const std::vector<Direction>& directions) {
    if (directions.empty()) return problems;
    const auto has = [](const AskedProblem& p, Direction direction) { return require_op_kind(p.op).has(direction); };
    for (const Direction direction : directions)
        if (std::ranges::none_of(problems, [&](const AskedProblem& p) { return has(p, direction); }))
            throw UsageError(fmt::format("--direction {}: none of the ops asked for has it", name(direction)));
    std::vector<AskedProblem> all;
    for (const AskedProblem& problem : problems) {
        if (problem.problem.direction != Direction::fwd) {
            if (std::ranges::count(directions, problem.problem.direction) > 0) all.push_back(problem);
            continue;
        }
        bool found = false;
        for (const Direction direction : directions) {
            if (!has(problem, direction)) continue;
            found = true;
            all.push_back(direction == Direction::fwd ? problem : problem_of(problem.op, problem.shape, direction));
        }
        if (found) continue;
        std::vector<std::string_view> names;
        for (const Direction direction : require_op_kind(problem.op).directions) names.push_back(name(direction));
        throw UsageError(fmt::format("--direction: {} has {} alone", problem.op, fmt::join(names, ", ")));
    }
    return all;
}

}  // namespace

std::vector<AskedProblem> asked_problems(const MicroRequest& request) {
    return in_directions(named_problems(request), request.directions);
}

ParsedMicro parse_micro(const std::vector<std::string>& arguments) {
    ParsedMicro parsed;
    MicroRequest& request = parsed.request;
    request.run.sampler.warm_up_s = 0.1;
    request.run.sampler.time_budget_s = 1;
    request.run.sampler.min_samples = 30;
    request.run.activity_runs = 3;
    request.run.activity_warm_up_s = 0;
    // What Google Benchmark asks for, device_s has given. Options that are typed come later and win.
    parsed.benchmark_arguments = {"kbench micro", "", "--benchmark_time_unit=us"};
    std::vector<std::string> own;
    for (const std::string& argument : arguments) {
        if (!is_benchmarks(argument)) {
            own.push_back(argument);
            continue;
        }
        // Handed on as a plain number, which every version of Google Benchmark reads.
        if (argument.starts_with(min_time))
            request.device_s = parse_min_time(argument);
        else
            parsed.benchmark_arguments.push_back(argument);
    }
    // Google Benchmark would read it itself, and write as it likes.
    const auto names_file = [](const std::string& argument) { return argument.starts_with(out_file); };
    if (const char* file = std::getenv("BENCHMARK_OUT");
        file != nullptr && *file != '\0' && std::ranges::none_of(arguments, names_file))
        parsed.benchmark_arguments.push_back(fmt::format("{}{}", out_file, file));
    parsed.benchmark_arguments[1] = fmt::format("{}{}", min_time, request.device_s);
    constexpr CommandText command{
        .name = "kbench micro",
        .what =
            "Runs single ops by provider, precision and shape on Google Benchmark, whose --benchmark_ options all work.",
        .examples = {"kbench micro --op gemm --shape m1024n5120k1280+bias+gelu",
                     "kbench micro --shapes-of gpt2 --precision bf16 --cache hot",
                     "kbench micro --suite deepbench --op conv2d --direction fwd,wgrad"}};
    parsed.help = parse_options(command, micro_options(), request, own);
    if (!parsed.help.empty()) return parsed;
    std::ranges::for_each(parsed.benchmark_arguments, check_benchmark_option);
    check_sources(request);
    check_out_file(request, parsed.benchmark_arguments);
    return parsed;
}

}  // namespace kbench
