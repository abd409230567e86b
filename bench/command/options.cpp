// The table of options and the parser of their values.
#include "bench/command/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "analysis/result/correlation.h"
#include "bench/command/option_values.h"
#include "bench/command/output.h"
#include "bench/plan/data/checkpoint_files.h"
#include "bench/plan/data/token_file.h"
#include "kbench/error.h"
#include "models/registry.h"

namespace kbench {
namespace {

/// "seq, batch and precision".
std::string listed(std::span<const std::string> names, std::string_view last_word) {
    return fmt::format("{} {} {}", fmt::join(names.first(names.size() - 1), ", "), last_word, names.back());
}

std::vector<std::string> sweep_names() {
    std::vector<std::string> names;
    for (const Axis* axis : sweep_axes()) names.emplace_back(axis->name);
    return names;
}

std::vector<std::string> zipped_axes(const std::string& text) {
    const std::vector<std::string> names = sweep_names();
    const std::vector<std::string_view> allowed(names.begin(), names.end());
    std::vector<std::string> zipped;
    for (const std::string& part : split(text))
        if (std::string name = word("--zip", part, allowed); std::ranges::find(zipped, name) == zipped.end())
            zipped.push_back(std::move(name));
    if (zipped.size() < 2)
        throw UsageError(fmt::format("--zip '{}': must be two or {} of {}", text, names.size() > 3 ? "more" : "three",
                                     fmt::join(names, ", ")));
    return zipped;
}

/// One of the words that an axis offers; else a file, whose numbers are the model's input of that name.
void set_word_or_file(const Axis& axis, const std::string& text, RunOptions& run) {
    const bool is_word = std::ranges::find(axis.offered, text) != axis.offered.end();
    std::error_code none;  // a name that nobody can open, such as one that is too long, is no file
    const std::filesystem::path file = token_file(text).path;
    if (!is_word && (!std::filesystem::exists(file, none) || std::filesystem::is_directory(file, none)))
        throw UsageError(
            fmt::format("--{} '{}': must be {} or a file", axis.name, text, fmt::join(axis.offered, ", ")));
    run.values[std::string(axis.name)] = {is_word ? text : std::string(axis.of_file)};
    if (!is_word) run.inputs[std::string(axis.name)] = text;
}

/// The option of an axis, as its row says.
Option axis_option(const Axis& axis) {
    std::string help(axis.what);
    if (axis.sweeps) {
        if (axis.kind != AxisKind::count) help = fmt::format("{} or all", fmt::join(axis.offered_words(), ", "));
        if (axis.takes_max) help += ", or max, the most that fit into memory";
        help += "; a list is a sweep";
    }
    return {fmt::format("--{}", axis.name), fmt::format("{}{}", axis.option, axis.sweeps ? ",..." : ""),
            axis.usual ? text_of(*axis.usual) : std::string(axis.otherwise), std::move(help),
            [&axis](RunRequest& r, const std::string& text) {
                if (!axis.of_file.empty())
                    set_word_or_file(axis, text, r.run);
                else
                    r.run.values[std::string(axis.name)] = axis_values(axis, text);
            }};
}

void name_file(std::string_view option, const std::string& text, FilesByName& files) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        throw UsageError(fmt::format("{} '{}': must be name=file", option, text));
    files[text.substr(0, equals)] = text.substr(equals + 1);
}

/// An input comes from one file.
void name_input(std::string_view option, const std::string& input, const std::string& file, RunOptions& run) {
    const auto [known, is_new] = run.inputs.try_emplace(input, file);
    if (!is_new && known->second != file)
        throw UsageError(
            fmt::format("{} {}: {} comes from {} already; leave out one", option, file, input, known->second.string()));
}

/// An output goes to one file.
void name_dump(std::string_view option, const std::string& output, const std::string& file, RunOptions& run) {
    const auto [known, is_new] = run.dumps.try_emplace(output, file);
    if (!is_new && known->second != file)
        throw UsageError(
            fmt::format("{} {}: {} goes to {} already; leave out one", option, file, output, known->second.string()));
}

void set_shard(SweepOptions& sweep, const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) throw UsageError(fmt::format("--shard '{}': must be I/N, such as 2/8", text));
    sweep.shard = number("--shard", text.substr(0, slash), 1, "I/N, such as 2/8");
    sweep.shards = number("--shard", text.substr(slash + 1), 1, "I/N, such as 2/8");
    if (sweep.shard > sweep.shards)
        throw UsageError(fmt::format("--shard {}: there is no part {} of {}", text, sweep.shard, sweep.shards));
}

const Option table[] = {
    {"--model", "NAME", "", "the model to run (`kbench list models`)",
     [](RunRequest& r, const std::string& text) { r.model = text; }},
    {"--config", "FILE", "", "a model's config.json instead of --model, such as Hugging Face's of GPT-2",
     [](RunRequest& r, const std::string& text) { r.config_file = text; }},
    {"--zip", "AXIS,...", "",
     fmt::format("pair the lists on these axes, first with first, second with second: {}",
                 listed(sweep_names(), "and")),
     [](RunRequest& r, const std::string& text) { r.run.zip = zipped_axes(text); }},
    {"--repeat", "N", "1", "go through all points N times; each repeat is a point of its own",
     [](RunRequest& r, const std::string& text) { r.run.repeats = number("--repeat", text, 1, "a whole number"); }},
    {"--shard", "I/N", "1/1",
     "measure only this part of the points, such as 2/8: one command each for N machines (docs/sweeps.md)",
     [](RunRequest& r, const std::string& text) { set_shard(r.run, text); }},
    backend_option<RunRequest>(),
    device_option<RunRequest>(),
    sms_option<RunRequest>(),
    threads_option<RunRequest>(),
    {"--provider", "OP=NAME,...", "", "who computes an op (`kbench list ops`, `kbench list providers`); * for all ops",
     [](RunRequest& r, const std::string& text) {
         for (const std::string& part : names("--provider", text)) {
             const std::size_t equals = part.find('=');
             if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
                 throw UsageError(fmt::format("--provider '{}': must be op=name, such as gemm=cublas", part));
             r.run.providers[part.substr(0, equals)] = part.substr(equals + 1);
         }
     },
     true},
    {"--weights", "FILE", "",
     "safetensors: a file, an index of shards or a folder of either; without it weights are random as the model initialises them",
     [](RunRequest& r, const std::string& text) { r.run.weights = text; }},
    {"--input", "NAME=FILE", "",
     "an input of the model: numbers as .npy, tokens as .npy, text, JSON or raw (FILE:uint16); random without it",
     [](RunRequest& r, const std::string& text) {
         FilesByName one;
         name_file("--input", text, one);
         name_input("--input", one.begin()->first, one.begin()->second.string(), r.run);
     },
     true},
    {"--dump-output", "NAME=FILE", "", "write an output of the model as .npy",
     [](RunRequest& r, const std::string& text) {
         FilesByName one;
         name_file("--dump-output", text, one);
         name_dump("--dump-output", one.begin()->first, one.begin()->second, r.run);
     },
     true},
    {"--tokens", "FILE", "", "the same as --input tokens=FILE; rows of tokens give --batch and --seq, too",
     [](RunRequest& r, const std::string& text) { name_input("--tokens", "tokens", text, r.run); }},
    {"--dump-logits", "FILE", "", "the same as --dump-output logits=FILE",
     [](RunRequest& r, const std::string& text) { name_dump("--dump-logits", "logits", text, r.run); }},
    {"--dump-gradients", "FILE", "",
     "write the gradients of --direction bwd or train as safetensors, by the weights' names; in fp16 they are of 8192 times the loss, of CTC 64 times, unless --input loss_scale=FILE says otherwise",
     [](RunRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--dump-gradients '': must name a file");
         r.run.dump_gradients = text;
     }},
    {"--seed", "N", "1", "seed of random weights, tokens and test operands",
     [](RunRequest& r, const std::string& text) {
         r.run.seed = number<std::uint64_t>("--seed", text, 0, "a whole number");
     }},
    {"--out", "DIR", "kbench-runs/<time>-<model>", "where result.json and the reports go",
     [](RunRequest& r, const std::string& text) { r.run.out = text; }},
    {"--compress", "", "", "write result.json.gz, a tenth of the size; every command reads it like result.json",
     [](RunRequest& r, const std::string&) { r.run.compress = true; }},
    {"--resume", "", "",
     "go on with the sweep in --out after a crash or a kill: measure only what is not finished there",
     [](RunRequest& r, const std::string&) { r.resume = true; }},
    {"--dry-run", "", "", "measure nothing: check all and print the points of the sweep, or of the shard, one a line",
     [](RunRequest& r, const std::string&) { r.dry_run = true; }},
    {"--format", "F", "text", "what goes to stdout: text or json (result.json)",
     [](RunRequest& r, const std::string& text) {
         r.format = word("--format", text, {"text", "json"});
     }},
    {"-v,--verbose", "", "", "print every figure and where it comes from, in place of the answer on one screen",
     [](RunRequest& r, const std::string&) { r.verbose = true; }},
    quiet_option<RunRequest>(),
    {"--time-budget", "TIME", "7s",
     "sampling of a point ends after this, converged or not; on a CPU so do, after as long again, the forwards on fewer threads and beside a thief and the steps at larger sizes",
     [](RunRequest& r, const std::string& text) {
         r.run.sampler.time_budget_s = seconds("--time-budget", text, "10ms");
         r.time_budget_given = true;
     }},
    {"--interval", "SHARE", "0.5%", "sampling ends when half the median's 95 % interval is within this",
     [](RunRequest& r, const std::string& text) {
         r.run.sampler.target_relative_ci = parse_share("--interval", text);
     }},
    {"--counters", "SET,...", "core",
     "hardware counters to read: none, core, full (every set) or sets of `kbench list metrics`; with samples, also what warps wait for, by CUPTI's PC sampling",
     [](RunRequest& r, const std::string& text) { set_counters(r.run.counters, text); }},
    {"--metrics", "NAME,...", "", "further metrics by kbench's name or the chip's own, such as dram__bytes_read.sum",
     [](RunRequest& r, const std::string& text) {
         r.run.counters.metrics = names("--metrics", text);
         r.run.counters.required = true;
     }},
    {"--ceilings", "WHICH", "auto",
     "the machine's roofs: auto (remembered ones, measured where there are none), measure or none",
     [](RunRequest& r, const std::string& text) { r.ceilings.policy = parse_ceiling_policy(text); }},
    {"--latency-only", "", "", "the end-to-end time and nothing that explains it: no steps, kernels, counters or roofs",
     [](RunRequest& r, const std::string&) { r.latency_only = true; }},
    {"--quick", "", "", "few samples: a first look in little time",
     [](RunRequest& r, const std::string&) { r.quick = true; }},
    {"--no-verify", "", "", "skip the check against the reference; recorded in the result",
     [](RunRequest& r, const std::string&) { r.run.verify = false; }},
    {"--no-sm-scaling", "", "",
     "skip the forwards on fewer of a GPU's SMs or a CPU's threads, which show whether these are the bottleneck",
     [](RunRequest& r, const std::string&) { r.run.sm_scaling_s = 0; }},
    {"--no-size-scaling", "", "",
     "skip the steps at larger sizes, which show how much of their time does not grow with the work",
     [](RunRequest& r, const std::string&) { r.run.size_scaling_s = 0; }},
    {"--no-theft", "", "",
     "skip the forwards beside a thief of DRAM's or, on a GPU, L2's bandwidth, which show whether that is the bottleneck",
     [](RunRequest& r, const std::string&) { r.run.theft_s = 0; }},
    {"--retune", "", "", "measure GEMM algorithms again instead of using the remembered ones",
     [](RunRequest& r, const std::string&) { r.run.retune = true; }},
    {"--deterministic", "", "",
     "nothing is chosen by a measured time, and sums are made in one order: the same bits in every run on one device",
     [](RunRequest& r, const std::string&) { r.run.deterministic = true; }},
};

/// The axes' options stand behind those that name the model.
constexpr std::ptrdiff_t before_axes = 2;

/// A file with rows of tokens has a batch and a length, which hold where --batch and --seq say none.
void take_shape_of_tokens(RunOptions& run) {
    const auto tokens = run.inputs.find("tokens");
    std::error_code none;  // a pipe is read once, by the run
    if (tokens == run.inputs.end() || run.model.axis("seq") == nullptr ||
        !std::filesystem::is_regular_file(token_file(tokens->second).path, none))
        return;
    const std::vector<std::int64_t> shape = read_integers(tokens->second, "token").shape;
    if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) return;
    run.values.try_emplace("batch", std::vector<AxisValue>{shape[0]});
    const auto phases = run.values.find("phase");
    const auto has_seq = [](const AxisValue& phase) { return axis_named("seq").is_of_phase(text_of(phase)); };
    if (phases == run.values.end() || std::ranges::any_of(phases->second, has_seq))
        run.values.try_emplace("seq", std::vector<AxisValue>{shape[1]});
}

/// A decode step beside prefills fills the last row that a prompt's cache has room for.
void take_past_of_prompt(RunOptions& run) {
    const auto phases = run.values.find("phase"), prompts = run.values.find("seq"), room = run.values.find("new");
    const auto asks_for = [&](const char* phase) { return std::ranges::count(phases->second, AxisValue(phase)) > 0; };
    if (phases == run.values.end() || prompts == run.values.end()) return;
    if (!asks_for("prefill") || !asks_for("decode")) return;
    const std::int64_t more = room == run.values.end() ? 0 : std::get<std::int64_t>(room->second.front());
    std::vector<AxisValue> pasts;
    for (const AxisValue& tokens : prompts->second)
        pasts.emplace_back(std::get<std::int64_t>(tokens) + std::max<std::int64_t>(more, 1) - 1);
    run.values.try_emplace("past", std::move(pasts));
}

/// Before anything is built: a list would fail at its last value.
void refuse_beyond_model(const RunOptions& run) {
    for (const ModelAxis& limit : run.model.axes) {
        if (!limit.is_count()) continue;
        for (const AxisValue& value : asked_values(axis_named(limit.name), run, run.of_model()))
            if (const std::int64_t count = std::get<std::int64_t>(value); count > limit.most)
                throw UsageError(fmt::format("--{} {}: over {}'s {} {}", limit.name, count, run.model.name,
                                             limit.most_is, limit.most));
    }
}

/// An axis that says where an input comes from, and `--input` of that name, must not disagree.
void refuse_input_twice(const RunOptions& run) {
    for (const ModelAxis& axis : run.model.axes) {
        const auto asked = run.values.find(axis.name);
        const auto input = run.inputs.find(axis.name);
        if (axis.changes_shapes() || asked == run.values.end() || input == run.inputs.end()) continue;
        if (const std::string word = text_of(asked->second.front()); word != axis.row().of_file)
            throw UsageError(fmt::format("--{0} {1}: --input {0}={2} gives others; leave out one of them", axis.name,
                                         word, input->second.string()));
    }
}

/// Throws UsageError where a dump would be written over another, over what the run itself writes or over what it reads.
void refuse_lost_dumps(const RunRequest& request) {
    const RunOptions& run = request.run;
    struct Named {
        std::string text;  ///< as it is typed
        std::filesystem::path file;
    };
    std::vector<Named> dumps, taken;
    const auto add = [](std::vector<Named>& list, std::string_view option, const std::filesystem::path& file) {
        if (!file.empty()) list.push_back({fmt::format("{}{}", option, file.string()), file});
    };
    for (const auto& [output, file] : run.dumps) add(dumps, fmt::format("--dump-output {}=", output), file);
    add(dumps, "--dump-gradients ", run.dump_gradients);
    add(taken, "--config ", request.config_file);
    for (const std::filesystem::path& file : files_of_checkpoint(run.weights.value_or("")))
        add(taken, "--weights ", file);
    for (const auto& [input, file] : run.inputs) add(taken, fmt::format("--input {}=", input), token_file(file).path);
    add(taken, "--out ", run.out);
    for (const Named& dump : dumps) {
        for (const Named& other : taken)
            if (is_same_file(dump.file, other.file))
                throw UsageError(fmt::format("{}: is the file of {} too; give each its own", dump.text, other.text));
        if (!run.out.empty() && is_written_into(run.out, dump.file))
            throw UsageError(fmt::format("{}: the run itself writes there; choose another name", dump.text));
        taken.push_back(dump);
    }
}

}  // namespace

void resolve(RunRequest& request) {
    request.run.model = model_asked_for(request.model, request.config_file);
    refuse_lost_dumps(request);  // before any file is read
    take_shape_of_tokens(request.run);
    take_past_of_prompt(request.run);
    refuse_beyond_model(request.run);
    refuse_input_twice(request.run);
    if (request.run.deterministic && request.run.retune)
        throw UsageError("--deterministic: measures no GEMM algorithms; leave out one of it and --retune");
    if (request.resume && request.run.out.empty()) throw UsageError("--resume: name the sweep's directory with --out");
    const std::size_t points = request.run.points().size();
    if (!request.run.dumps.empty() && points > 1)
        throw UsageError(fmt::format("--dump-output holds one point, the sweep has {}: give one {}", points,
                                     listed(sweep_names(), "and")));
    if (!request.run.dump_gradients.empty() && points > 1)
        throw UsageError(fmt::format("--dump-gradients holds one point, the sweep has {}: give one {}", points,
                                     listed(sweep_names(), "and")));
    for (const auto& [output, file] : request.run.dumps) check_can_write("--dump-output", file, request.run.out);
    if (!request.run.dump_gradients.empty())
        check_can_write("--dump-gradients", request.run.dump_gradients, request.run.out);
    request.run.experiments_s = request.run.sampler.time_budget_s;
    if (request.latency_only) {
        if (request.run.counters.required)
            throw UsageError("--latency-only: reads no counters; leave out one of it and --counters or --metrics");
        request.run.counters.sets.clear();
        request.ceilings.policy = CeilingPolicy::none;
        request.run.step_runs = request.run.activity_runs = 0;
        request.run.leave_out_experiments();
    }
    if (request.quick) {
        request.ceilings.seconds = 2;
        request.run.sampler.warm_up_s = 0.1;
        request.run.sampler.min_time_s = 0.1;
        request.run.sampler.min_samples = 3;
        request.run.sampler.min_independent = fewest_independent;
        if (!request.time_budget_given) request.run.sampler.time_budget_s = 1;
        request.run.step_runs = std::min(1, request.run.step_runs);
        request.run.activity_warm_up_s = 0;
        request.run.leave_out_experiments();
        request.run.output_repeats = 1;
    }
}

std::span<const Option> run_options() {
    static const std::vector<Option> all = [] {
        std::vector<Option> options(std::begin(table), std::begin(table) + before_axes);
        for (const Axis* axis : axes_in_order())
            if (!axis->option.empty()) options.push_back(axis_option(*axis));
        options.insert(options.end(), std::begin(table) + before_axes, std::end(table));
        return options;
    }();
    return all;
}

std::string options_markdown() {
    std::string text =
        "# kbench run\n\nWritten from the table in bench/command/options.cpp by a test; `kbench run --help` says the same.\n";
    for (const std::string_view group : option_groups()) {
        std::vector<Option> rows;
        std::ranges::copy_if(run_options(), std::back_inserter(rows),
                             [&](const Option& option) { return option_group(option.name) == group; });
        if (!rows.empty()) text += fmt::format("\n## {}\n\n{}", group, markdown_of<RunRequest>(rows));
    }
    return text;
}

ParsedRun parse_run(const std::vector<std::string>& arguments) {
    ParsedRun parsed;
    constexpr CommandText command{
        .name = "kbench run",
        .what = "Runs a model, verifies every kind of step, times it and writes result.json and reports.",
        .examples = {"kbench --model gpt2-large --seq 1024",
                     "kbench --model gpt2 --batch 1,2,4 --precision fp32,bf16 --quick",
                     "kbench --model gpt2 --direction train --counters full --out runs/train"}};
    const std::vector<BoundOption> options = bind_options<RunRequest>(run_options(), parsed.request);
    parsed.help = parse_arguments(command, options, nullptr, arguments);
    if (parsed.help.empty()) resolve(parsed.request);
    return parsed;
}

}  // namespace kbench
