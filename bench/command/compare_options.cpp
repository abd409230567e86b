// The table of options of `kbench compare`.
#include "bench/command/compare_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "bench/command/option_values.h"
#include "models/base/format.h"

namespace kbench {
namespace {

template <class Enum>
Enum choice(std::string_view option, const std::string& text, std::span<const std::string_view> names) {
    return static_cast<Enum>(std::ranges::find(names, word(option, text, names)) - names.begin());
}

/// "h200=3.5,xeon=0.8": a name may hold an =, a price cannot.
void set_prices(CompareRequest& request, const std::string& text) {
    for (const std::string& part : split(text)) {
        const std::size_t equals = part.rfind('=');
        const auto price =
            equals == std::string::npos ? std::nullopt : plain_number(std::string_view(part).substr(equals + 1));
        if (!price || equals == 0)
            throw UsageError(
                fmt::format("--price '{}': must be NAME=DOLLARS_PER_HOUR,..., such as h200=3.5,xeon=0.8", part));
        if (!request.options.prices.emplace(part.substr(0, equals), *price).second)
            throw UsageError(fmt::format("--price: '{}' has two prices", part.substr(0, equals)));
    }
    if (request.options.prices.empty()) throw UsageError("--price '': must be NAME=DOLLARS_PER_HOUR,...");
}

const OptionOf<CompareRequest> table[] = {
    {"--by", "LEVEL", "layer", "what a row of the steps is: layer (of all blocks), op or step",
     [](CompareRequest& r, const std::string& text) {
         r.options.by = choice<CompareBy>("--by", text, compare_by_names);
     }},
    {"--top", "N", "10; json: all", "at most this many rows of steps a point, the largest difference in time first",
     [](CompareRequest& r, const std::string& text) {
         r.top = number<std::size_t>("--top", text, 1, "a whole number");
     }},
    {"--name", "NAME,...", "directories", "what to call the results, in their order",
     [](CompareRequest& r, const std::string& text) { r.names = split(text); }},
    {"--price", "NAME=DOLLARS,...", "", "dollars an hour by a result's name: what a million sequences and tokens cost",
     set_prices},
    {"--fail-above", "SHARE", "", "such as 3% or 0.03: exit code 1 when a run is slower than A by more, for certain",
     [](CompareRequest& r, const std::string& text) { r.options.fail_above = parse_share("--fail-above", text); }},
    {"--format", "F", "text", "text, markdown, html (a page) or json, which has every figure in full precision",
     [](CompareRequest& r, const std::string& text) {
         r.format = choice<CompareFormat>("--format", text, compare_format_names);
     }},
};

void check_names(const CompareRequest& request) {
    if (request.names.empty()) return;
    if (request.names.size() != request.files.size())
        throw UsageError(fmt::format("--name: {} names for {} results", request.names.size(), request.files.size()));
    std::set<std::string> distinct;
    for (const std::string& name : request.names)
        if (name.empty() || !distinct.insert(name).second)
            throw UsageError(fmt::format("--name '{}': each result needs a name of its own", name));
}

}  // namespace

std::span<const OptionOf<CompareRequest>> compare_options() { return table; }

std::string compare_options_markdown() { return markdown_of(compare_options()); }

ParsedCompare parse_compare(const std::vector<std::string>& arguments) {
    ParsedCompare parsed;
    CompareRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench compare",
        .what = "Compares results: what takes longer, why, and what it costs. Nothing is measured.",
        .argument = "RESULT",
        .argument_what =
            "result.json files, or directories: their result.json, or all results in them as one; the first is A",
        .examples = {"kbench compare runs/before runs/after",
                     "kbench compare runs/h200 runs/xeon --price h200=3.5,xeon=0.8",
                     "kbench compare runs/before runs/after --fail-above 3%"}};
    parsed.help = parse_options(command, compare_options(), request, arguments, &request.files);
    if (!parsed.help.empty()) return parsed;
    if (request.files.size() < 2)
        throw UsageError(fmt::format("{}: name two or more, as in `kbench compare A/result.json B/result.json`",
                                     plural(std::ssize(request.files), "result")));
    check_names(request);
    return parsed;
}

std::vector<std::string> run_names(const std::vector<std::string>& paths) {
    std::vector<std::string> names;
    for (const std::string& text : paths) {
        const std::filesystem::path path = std::filesystem::absolute(text).lexically_normal();
        const std::string directory = path.parent_path().filename().string();
        const bool is_compressed = path.extension() == ".gz";
        const std::filesystem::path plain = is_compressed ? path.stem() : path.filename();
        names.push_back(plain == "result.json" && !directory.empty() ? directory : plain.stem().string());
    }
    const std::vector<std::string> short_names = names;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::ranges::count(short_names, short_names[i]) > 1) names[i] = paths[i];
    std::set<std::string> distinct;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!distinct.insert(names[i]).second) distinct.insert(names[i] += fmt::format("#{}", i + 1));
    return names;
}

}  // namespace kbench
