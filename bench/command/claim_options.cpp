// The table of options of `kbench claim`.
#include "bench/command/claim_options.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/command/option_values.h"

namespace kbench {
namespace {

using Options = std::vector<OptionOf<ClaimRequest>>;

/// "31ms", "2.1s", "450us".
double seconds_of(const std::string& text) {
    constexpr std::pair<std::string_view, double> units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    for (const auto& [unit, seconds] : units)
        if (error == std::errc{} && std::string_view(end) == unit && std::isfinite(value) && value > 0)
            return value * seconds;
    throw UsageError(
        fmt::format("--latency '{}': must be a time above 0 with its unit, such as 31ms, 2.1s or 450us", text));
}

/// What a model may be built at.
OptionOf<ClaimRequest> axis_option(const Axis& axis) {
    return {fmt::format("--{}", axis.name), std::string(axis.option), axis.usual ? text_of(*axis.usual) : "the model's",
            std::string(axis.what), [&axis](ClaimRequest& r, const std::string& text) {
                const std::vector<AxisValue> values = axis_values(axis, text);
                if (values.size() != 1 || values.front() == AxisValue(std::int64_t{0}))
                    throw UsageError(fmt::format("--{} '{}': a claim is about one value", axis.name, text));
                if (axis.kind == AxisKind::count)
                    r.at.counts[std::string(axis.name)] = std::get<std::int64_t>(values.front());
                else
                    r.at.words[std::string(axis.name)] = std::get<std::string>(values.front());
            }};
}

}  // namespace

std::span<const OptionOf<ClaimRequest>> claim_options() {
    static const Options all = [] {
        Options options = {{"--model", "NAME", "", "the model (`kbench list models`)",
                            [](ClaimRequest& r, const std::string& text) { r.model = text; }},
                           {"--config", "FILE", "", "a model's config.json instead of --model",
                            [](ClaimRequest& r, const std::string& text) { r.config_file = text; }}};
        for (const Axis* axis : axes_in_order())
            // What a model is built at: of sequences that are padded a claim is about all frames.
            if (!axis->option.empty() && axis->kind != AxisKind::name && (axis->of_model || axis->name == "batch"))
                options.push_back(axis_option(*axis));
        options.push_back({"--machine", "ID", "",
                           "a machine of `kbench list machines`, or a machine file, which ends in .json",
                           [](ClaimRequest& r, const std::string& text) { r.machine = text; }});
        options.push_back({"--latency", "TIME", "", "the claimed time of a forward pass, such as 31ms, 2.1s or 450us",
                           [](ClaimRequest& r, const std::string& text) { r.latency_s = seconds_of(text); }});
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
        "kbench claim", "Checks a published time against what its machine can do at the most. Nothing is measured."};
    parsed.help = parse_options(command, claim_options(), request, arguments);
    if (!parsed.help.empty()) return parsed;
    request.spec = model_asked_for(request.model, request.config_file);
    if (request.machine.empty())
        throw UsageError("--machine is missing: name one of `kbench list machines`, or a machine file");
    if (request.latency_s == 0) throw UsageError("--latency is missing: the claimed time, such as 31ms");
    return parsed;
}

}  // namespace kbench
