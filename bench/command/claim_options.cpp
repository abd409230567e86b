// The table of options of `kbench claim`.
#include "bench/command/claim_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bench/command/option_values.h"
#include "bench/measure/sweep/sweep.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

using Options = std::vector<OptionOf<ClaimRequest>>;

/// "38600tokens/s", "12sequences/s", "763TFLOP/s".
void set_rate(ClaimRequest& request, const std::string& text) {
    struct Unit {
        std::string_view name;
        RateOf of;
        double factor = 1;
    };
    constexpr Unit units[] = {{"tokens/s", RateOf::tokens},
                              {"sequences/s", RateOf::sequences},
                              {"GFLOP/s", RateOf::flops, 1e9},
                              {"TFLOP/s", RateOf::flops, 1e12}};
    const auto [value, told] = number_and_unit(text);
    for (const Unit& unit : units)
        if (told == unit.name) {
            request.rate_of = unit.of;
            request.per_s = value * unit.factor;
            return;
        }
    throw UsageError(fmt::format(
        "--throughput '{}': must be a rate above 0 with its unit, such as 38600tokens/s, 12sequences/s or 763TFLOP/s",
        text));
}

int parse_devices(const std::string& text) {
    constexpr int most = 100'000;
    const std::vector<std::int64_t> numbers = whole_numbers("--devices", text);
    if (numbers.size() != 1 || numbers.front() > most)
        throw UsageError(fmt::format("--devices '{}': must be one number of at most {}", text, most));
    return static_cast<int>(numbers.front());
}

/// What a model may be built at.
OptionOf<ClaimRequest> axis_option(const Axis& axis) {
    const std::string usual = axis.name == "attention" ? "unfused, which moves more; fused with a backward"
                              : axis.usual             ? text_of(*axis.usual)
                                                       : "the model's";
    return {fmt::format("--{}", axis.name), std::string(axis.option), usual, std::string(axis.what),
            [&axis](ClaimRequest& r, const std::string& text) {
                const std::vector<AxisValue> values = axis_values(axis, text);
                if (values.size() != 1 || (axis.takes_max && values.front() == AxisValue(max_batch)))
                    throw UsageError(fmt::format("--{} '{}': a claim is about one value", axis.name, text));
                if (axis.kind == AxisKind::count)
                    r.at.counts[std::string(axis.name)] = std::get<std::int64_t>(values.front());
                else
                    r.at.words[std::string(axis.name)] = std::get<std::string>(values.front());
            }};
}

/// The one op that --op and --shape name.
Step problem_of(const ClaimRequest& request) {
    if (!request.model.empty() || !request.config_file.empty())
        throw UsageError("--op and --model: a claim is about one of them");
    if (request.op.empty()) throw UsageError("--shape is of one op: name it, as in --op gemm --shape m4096n4096k4096");
    const OpKind& kind = require_op_kind(request.op);
    if (request.shape.empty())
        throw UsageError(fmt::format("--shape is missing: the shape of {}, such as {}", request.op, kind.example));
    if (!request.at.counts.empty() || !request.at.words.empty())
        throw UsageError("--op has its whole size in --shape; axes such as --batch are a model's");
    const auto named = std::ranges::find(direction_names, request.direction);
    const auto direction = static_cast<Direction>(named - std::begin(direction_names));
    if (named == std::end(direction_names) || !kind.has(direction))
        throw UsageError(fmt::format("--direction {}: {} has no such direction", request.direction, request.op));
    return parse_problem(request.op, request.shape, direction);
}

/// What does not go together is refused.
void require_fitting(const ClaimRequest& r) {
    if (r.machine.empty())
        throw UsageError("--machine is missing: name one of `kbench list machines`, or a machine file");
    if (r.latency_s > 0 && r.per_s > 0) throw UsageError("--latency and --throughput: a claim is about one of them");
    if (!r.problem && (r.direction == "dgrad" || r.direction == "wgrad"))
        throw UsageError(fmt::format("--direction {}: is of an op; a model has fwd, bwd and train", r.direction));
    if (!r.problem) require_direction(r.at.phase(), r.direction);
    for (const ModelAxis& axis : r.spec.axes)
        if ((r.at.counts.contains(axis.name) || r.at.words.contains(axis.name)) && !is_of_phase(r.at, axis))
            throw UsageError(only_of_its_phases(axis.row()));
    if (r.per_s == 0 || r.rate_of == RateOf::flops) return;
    if (r.problem) throw UsageError("--throughput: the rate of an op is in TFLOP/s");
    if (r.rate_of == RateOf::tokens && r.spec.axis("seq") == nullptr)
        throw UsageError(fmt::format("--throughput: {} has no tokens; give sequences/s", r.spec.name));
}

}  // namespace

std::span<const OptionOf<ClaimRequest>> claim_options() {
    static const Options all = [] {
        Options options = {{"--model", "NAME", "", "the model (`kbench list models`)",
                            [](ClaimRequest& r, const std::string& text) { r.model = text; }},
                           {"--config", "FILE", "", "a model's config.json instead of --model",
                            [](ClaimRequest& r, const std::string& text) { r.config_file = text; }}};
        for (const Axis* axis : axes_in_order())
            if (is_of_shapes(*axis)) options.push_back(axis_option(*axis));
        options.push_back({"--op", "OP", "", "one op instead of a model (`kbench list ops`)",
                           [](ClaimRequest& r, const std::string& text) { r.op = text; }});
        options.push_back({"--shape", "SHAPE", "", "its shape, such as m4096n4096k4096",
                           [](ClaimRequest& r, const std::string& text) { r.shape = text; }});
        options.push_back({"--direction", "D", "fwd",
                           "fwd, bwd or train (forward, backward and AdamW); of an op fwd, bwd, dgrad or wgrad",
                           [](ClaimRequest& r, const std::string& text) {
                               r.direction = word("--direction", text, {"fwd", "bwd", "train", "dgrad", "wgrad"});
                           }});
        options.push_back({"--machine", "ID", "",
                           "a machine of `kbench list machines`, or a machine file, which ends in .json",
                           [](ClaimRequest& r, const std::string& text) { r.machine = text; }});
        options.push_back({"--devices", "N", "1",
                           "how many such machines share the work; what they exchange is not counted",
                           [](ClaimRequest& r, const std::string& text) { r.devices = parse_devices(text); }});
        options.push_back(
            {"--latency", "TIME", "that of the fastest program possible",
             "the claimed time of a forward pass, decode step or training step, such as 31ms, 2.1s or 450us",
             [](ClaimRequest& r, const std::string& text) { r.latency_s = seconds("--latency", text, "1ns"); }});
        options.push_back(
            {"--throughput", "RATE", "",
             "instead of --latency: the claimed rate of all devices, such as 38600tokens/s, 12sequences/s or 763TFLOP/s",
             [](ClaimRequest& r, const std::string& text) { set_rate(r, text); }});
        options.push_back({"--precision", "P", "fp32 if possible, else tf32, else fp16",
                           "what it is said to have computed in: fp16, bf16, tf32, fp32 or fp64",
                           [](ClaimRequest& r, const std::string& text) {
                               r.precision = parse_one_precision(text, "a claim is about one value");
                           }});
        options.push_back({"--format", "F", "text", "text, html (a page) or json, which has full precision",
                           [](ClaimRequest& r, const std::string& text) {
                               r.format = word("--format", text, {"text", "html", "json"});
                           }});
        return options;
    }();
    return all;
}

std::string claim_options_markdown() { return markdown_of(claim_options()); }

ParsedClaim parse_claim(const std::vector<std::string>& arguments) {
    ParsedClaim parsed;
    ClaimRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench claim",
        .what = "Checks a published time against what its machine can do at the most. Nothing is measured.",
        .examples = {"kbench claim --model gpt2-large --latency 31ms --machine h100-sxm",
                     "kbench claim --model gpt2 --phase decode --batch 8 --throughput 38600tokens/s --machine l4",
                     "kbench claim --op gemm --shape m64n64k64 --latency 5us --machine l4"}};
    parsed.help = parse_options(command, claim_options(), request, arguments);
    if (!parsed.help.empty()) return parsed;
    if (request.op.empty() && request.shape.empty())
        request.spec = model_asked_for(request.model, request.config_file);
    else
        request.problem = problem_of(request);
    require_fitting(request);
    return parsed;
}

}  // namespace kbench
