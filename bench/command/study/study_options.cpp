// Reads a study's options, most of which are handed on to `kbench run`.
#include "bench/command/study/study_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/command/option_values.h"
#include "kbench/error.h"

namespace kbench {
namespace {

std::vector<std::int64_t> batches(const std::string& text) {
    std::vector<std::int64_t> list;
    for (const AxisValue& value : axis_values(axis_named("batch"), text)) {
        const auto batch = std::get<std::int64_t>(value);
        if (std::ranges::find(list, batch) == list.end()) list.push_back(batch);
    }
    return list;
}

const OptionOf<StudyRequest> own_options[] = {
    {"--batch", "N", "8 on a GPU, 1 on a CPU", "sequences at once, wherever a study does not vary them",
     [](StudyRequest& r, const std::string& text) {
         r.batch = number<std::int64_t>("--batch", text, 1, "a whole number; --batches takes a list");
     }},
    {"--batches", "N,...", "powers of two, and max",
     "the batches to compare; max is the largest that fits into memory, found by running it",
     [](StudyRequest& r, const std::string& text) { r.batches = batches(text); }},
    {"--precision", "P", "bf16 on a GPU, fp32 on a CPU", "wherever a study does not vary it",
     [](StudyRequest& r, const std::string& text) {
         r.precision = parse_one_precision(text, "must be one; --precisions takes a list");
     }},
    {"--precisions", "P,...", "all", "the precisions to compare",
     [](StudyRequest& r, const std::string& text) { r.precisions = parse_precisions(text); }},
    {"--budget", "TIME", "10m",
     "leave out what would not be done within this time, such as 90s, 8m or 1h, and say so in the report; none: leave out nothing",
     [](StudyRequest& r, const std::string& text) {
         r.budget_s = text == "none" ? std::nullopt : std::optional(seconds("--budget", text, "1s", ", or none"));
     }},
    {"--redraw", "DIR", "", "measure nothing: draw the reports of the study in DIR again",
     [](StudyRequest& r, const std::string& text) { r.redraw = text; }},
};

/// What a study has one value of, where a run may have several.
struct Length {
    std::string_view option, axis, what;
    std::int64_t most_on_cpu;  ///< unless more is asked for
};
constexpr Length lengths[] = {{"--seq", "seq", "sequence length in tokens", 128},
                              {"--frames", "frames", "frames of the longest utterance", 200}};

/// The options of `kbench run` that hold for each of a study's points; a study decides the others itself.
constexpr std::string_view shared_options[] = {
    "--model",           "--config",    "--seq",         "--frames",       "--cell",
    "--lengths",         "--attention", "--optimizer",   "--master",       "--recompute",
    "--backend",         "--device",    "--sms",         "--threads",      "--provider",
    "--weights",         "--seed",      "-q,--quiet",    "--out",          "--resume",
    "--shard",           "--dry-run",   "--time-budget", "--interval",     "--counters",
    "--metrics",         "--ceilings",  "--quick",       "--no-verify",    "--no-sm-scaling",
    "--no-size-scaling", "--no-theft",  "--retune",      "--deterministic"};

}  // namespace

std::span<const OptionOf<StudyRequest>> study_options() {
    static const std::vector<OptionOf<StudyRequest>> all = [] {
        std::vector<OptionOf<StudyRequest>> list;
        for (const std::string_view name : shared_options) {
            const std::span<const Option> run = run_options();
            const auto row = std::ranges::find(run, name, &Option::name);
            list.push_back({row->name, row->value, row->fallback, row->help,
                            [row](StudyRequest& r, const std::string& text) { row->set(r, text); }, row->repeats});
            const auto* length = std::ranges::find(lengths, name, &Length::option);
            if (length == std::end(lengths)) continue;
            list.back().value = "N";
            list.back().fallback = fmt::format("{}; on a CPU at most {}", row->fallback, length->most_on_cpu);
            list.back().help = length->what;
        }
        list.insert(list.begin() + 2, std::begin(own_options), std::end(own_options));
        return list;
    }();
    return all;
}

std::string study_options_markdown() { return markdown_of(study_options()); }

ParsedStudy parse_study(const std::vector<std::string>& arguments) {
    ParsedStudy parsed;
    StudyRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench study",
        .what =
            "Answers four questions about a model on this machine in one report: bottlenecks, batch, precision, forward against backward.",
        .examples = {"kbench study --model gpt2-large", "kbench study --model gpt2 --budget 5m --precisions fp32,bf16",
                     "kbench study --redraw runs/study"}};
    parsed.help = parse_options(command, study_options(), request, arguments);
    if (!parsed.help.empty() || !request.redraw.empty()) return parsed;
    for (const Length& length : lengths)
        if (const auto asked = request.run.values.find(length.axis);
            asked != request.run.values.end() && asked->second.size() > 1)
            throw UsageError(fmt::format("{}: a study has one value; `kbench run` sweeps over several", length.option));
    request.run.values["direction"] = {std::string("fwd"), std::string("train")};  // either may have options
    request.run.compress = true;
    request.run.marginal_s = 0;
    resolve(request);
    if (!request.quick && !request.time_budget_given) request.run.sampler.time_budget_s = 3;
    return parsed;
}

StudyBase study_base(StudyRequest& request, bool is_gpu) {
    if (!is_gpu)
        for (const Length& length : lengths)
            if (const ModelAxis* own = request.run.model.axis(length.axis);
                own != nullptr && !request.run.values.contains(length.axis) && own->usual > length.most_on_cpu)
                request.run.values[std::string(length.axis)] = {length.most_on_cpu};
    StudyBase base;
    base.batch = request.batch.value_or(is_gpu ? 8 : 1);
    base.precision = request.precision.value_or(is_gpu ? Precision::bf16 : Precision::fp32);
    base.precisions = request.precisions;
    base.batches = request.batches;
    return base;
}

}  // namespace kbench
