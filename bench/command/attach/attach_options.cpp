// The table of options of `kbench attach`.
#include "bench/command/attach/attach_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/program/iterations.h"
#include "bench/command/option_values.h"
#include "bench/command/repeated/child.h"
#include "kbench/error.h"
#include "models/base/values.h"

namespace kbench {
namespace {

void set_sets(CounterRequest& counters, const std::string& text) {
    set_counters(counters, text);
    if (counters.samples())
        throw UsageError("--counters samples: warps of any program cannot be sampled; leave it out");
}

const OptionOf<AttachRequest> table[] = {
    {"--out", "DIR", "kbench-runs/<time>-<program>", "where result.json, reports and what the program printed go",
     [](AttachRequest& r, const std::string& text) { r.out = text; }},
    {"--from", "RANGE", "found",
     "an iteration begins with this NVTX range, module or op; otherwise where kernels repeat",
     [](AttachRequest& r, const std::string& text) { r.from = text; }},
    {"--warmup", "N", "1", "iterations left out at the begin; the same as --iterations N:",
     [](AttachRequest& r, const std::string& text) { r.warmup = number("--warmup", text, 0, "a number"); }},
    {"--iterations", "A:B", "all but the first",
     "which of the iterations are used, counted from 0, B not included; either may be left out",
     [](AttachRequest& r, const std::string& text) {
         iteration_range(text);
         r.iterations = text;
     }},
    {"--counters", "SET,...", "core",
     "hardware counters, one pass an iteration: none, core or sets of `kbench list metrics`",
     [](AttachRequest& r, const std::string& text) { set_sets(r.counters, text); }},
    {"--no-names", "", "", "leave out the run that collects NVTX ranges and, of PyTorch, layers and ops",
     [](AttachRequest& r, const std::string&) { r.names = false; }},
    {"--ceilings", "WHICH", "auto",
     "the machine's roofs: auto (remembered ones, measured where there are none), measure or none",
     [](AttachRequest& r, const std::string& text) { r.ceilings.policy = parse_ceiling_policy(text); }},
    {"--format", "F", "text", "what is printed: text or json",
     [](AttachRequest& r, const std::string& text) {
         r.format = word("--format", text, {"text", "json"});
     }},
    {"--compress", "", "", "write result.json.gz, a tenth of the size; every command reads it like result.json",
     [](AttachRequest& r, const std::string&) { r.compress = true; }},
    {"-v,--verbose", "", "", "print every figure and where it comes from, in place of the answer on one screen",
     [](AttachRequest& r, const std::string&) { r.verbose = true; }},
    quiet_option<AttachRequest>(),
};

}  // namespace

std::span<const OptionOf<AttachRequest>> attach_options() { return table; }

std::string attach_options_markdown() { return markdown_of(attach_options()); }

ParsedAttach parse_attach(const std::vector<std::string>& arguments) {
    ParsedAttach parsed;
    AttachRequest& request = parsed.request;
    const auto end = std::ranges::find(arguments, "--");
    constexpr CommandText command{
        "kbench attach", "Runs a program several times, unchanged, and tells what its time on the GPU is made of."};
    parsed.help = parse_options(command, attach_options(), request, {arguments.begin(), end});
    if (!parsed.help.empty()) return parsed;
    if (end != arguments.end()) request.command.assign(std::next(end), arguments.end());
    if (request.warmup && !request.iterations.empty())
        throw UsageError(
            fmt::format("--warmup {}: --iterations says which are used; leave one of them out", *request.warmup));
    if (request.warmup) request.iterations = fmt::format("{}:", *request.warmup);
    if (!request.from.empty() && !request.names)
        throw UsageError("--from: the run that --no-names leaves out collects ranges; leave out one of them");
    if (request.command.empty())
        throw UsageError("no program: write it behind --, as in kbench attach -- python3 train.py");
    if (!is_program(request.command.front()))
        throw UsageError(fmt::format("there is no program '{}'", request.command.front()));
    return parsed;
}

}  // namespace kbench
