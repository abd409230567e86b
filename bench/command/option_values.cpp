// Parsers of values.
#include "bench/command/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "bench/command/option_table.h"
#include "bench/measure/sweep/sweep.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/base/write_file.h"
#include "models/registry.h"

namespace kbench {

std::vector<std::int64_t> whole_numbers(std::string_view option, const std::string& text) {
    std::vector<std::int64_t> values;
    for (const std::string& part : split(text))
        values.push_back(number<std::int64_t>(option, part, 1, "a whole number"));
    if (values.empty()) throw UsageError(fmt::format("{} '': must be a whole number of at least 1", option));
    return values;
}

std::vector<AxisValue> axis_values(const Axis& axis, const std::string& text) {
    const std::string option = fmt::format("--{}", axis.name);
    const auto offered = axis.offered_words();
    const std::string_view a_count = axis.takes_max ? "max or a whole number" : "a whole number";
    const auto value_of = [&](const std::string& typed) -> AxisValue {
        if (axis.kind == AxisKind::count)
            return axis.takes_max && typed == "max" ? max_batch
                                                    : number<std::int64_t>(option, typed, axis.least, a_count);
        const std::string part = spelt_out(typed);
        if (!axis.sweeps) return word(option, part, offered);
        if (std::ranges::find(offered, part) == offered.end())
            throw UsageError(fmt::format("{} '{}': {} or all", option, part, nearest_name(part, offered)));
        return part;
    };
    if (!axis.sweeps) return {value_of(text)};
    std::vector<AxisValue> values;
    if (axis.kind != AxisKind::count && text == "all")
        for (const std::string_view each : offered) values.emplace_back(std::string(each));
    else
        for (const std::string& part : split(text)) values.push_back(value_of(part));
    if (values.empty())
        throw UsageError(axis.kind == AxisKind::count
                             ? fmt::format("{} '': must be {} of at least {}", option, a_count, axis.least)
                             : fmt::format("{} '': must be {} or all", option, fmt::join(offered, ", ")));
    return values;
}

bool is_of_shapes(const Axis& axis) {
    return !axis.option.empty() && axis.kind != AxisKind::name && (axis.of_model || axis.name == "batch");
}

std::optional<double> plain_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0) return {};
    return value;
}

double parse_share(std::string_view option, const std::string& text) {
    const bool is_percent = text.ends_with('%');
    const auto value = plain_number(std::string_view(text).substr(0, text.size() - (is_percent ? 1 : 0)));
    if (!value || (!is_percent && *value >= 1))
        throw UsageError(fmt::format("{} '{}': must be a share such as 3% or 0.03", option, text));
    return is_percent ? *value / 100 : *value;
}

ModelSpec model_asked_for(const std::string& model, const std::string& config_file) {
    if (model.empty() == config_file.empty())
        throw UsageError(model.empty() ? "--model is missing: name one of `kbench list models`, or give --config"
                                       : "--model and --config exclude each other: give one");
    if (!model.empty()) return find_model(model);
    std::error_code none;
    if (std::filesystem::is_directory(config_file, none))
        throw UsageError(fmt::format("--config {0}: is a directory; give the config.json in it: {1}", config_file,
                                     (std::filesystem::path(config_file) / "config.json").string()));
    return read_model(read_whole_file(config_file), config_file);
}

std::string spelt_out(const std::string& text) {
    // As PyTorch, NumPy and C call them.
    static constexpr std::pair<std::string_view, Precision> spellings[] = {
        {"float16", Precision::fp16}, {"half", Precision::fp16},    {"bfloat16", Precision::bf16},
        {"float32", Precision::fp32}, {"float64", Precision::fp64}, {"double", Precision::fp64}};
    const std::string small = lower(text);
    if (const auto precision = parse_precision(small)) return small;
    for (const auto& [spelling, precision] : spellings)
        if (spelling == small) return std::string(name(precision));
    return text;
}

Precision parse_one_precision(const std::string& text, std::string_view otherwise) {
    if (text == "all" || text.find(',') != std::string::npos)
        throw UsageError(fmt::format("--precision '{}': {}", text, otherwise));
    return parse_precision(word("--precision", spelt_out(text), axis_named("precision").words)).value();
}

std::vector<Precision> parse_precisions(const std::string& text) {
    std::vector<Precision> values;
    for (const AxisValue& value : axis_values(axis_named("precision"), text))
        values.push_back(parse_precision(text_of(value)).value());
    return values;
}

void set_counters(CounterRequest& request, const std::string& text) {
    if (text.empty()) throw UsageError("--counters '': must be none, core, full or sets of `kbench list metrics`");
    request.sets = text == "none" ? std::vector<std::string>{} : split(text);
    request.required = text != "none" || !request.metrics.empty();
}

CeilingPolicy parse_ceiling_policy(const std::string& text) {
    const std::string chosen = word("--ceilings", text, ceiling_policy_names);
    return static_cast<CeilingPolicy>(std::ranges::find(ceiling_policy_names, chosen) -
                                      std::begin(ceiling_policy_names));
}

void check_can_write(std::string_view option, const std::filesystem::path& file,
                     const std::filesystem::path& made_later) {
    if (file.empty()) throw UsageError(fmt::format("{} '': must name a file", option));
    const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
    std::error_code none;
    if (!made_later.empty() && !std::filesystem::exists(made_later, none) && is_same_file(directory, made_later))
        return;
    if (!std::filesystem::is_directory(directory, none))
        throw UsageError(fmt::format("{} {}: {} is no directory", option, file.string(), directory.string()));
    if (const std::string why = why_not_a_file(file); !why.empty())
        throw UsageError(fmt::format("{} {}: {}; it should be a file", option, file.string(), why));
    if (access(directory.c_str(), W_OK | X_OK) != 0)
        throw UsageError(fmt::format("{} {}: {} cannot be written to", option, file.string(), directory.string()));
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
    namespace fs = std::filesystem;
    std::error_code none;
    if (fs::equivalent(a, b, none)) return true;
    const auto resolved = [&](const fs::path& path) {
        const fs::path file = fs::absolute(path.has_filename() ? path : path.parent_path(), none);
        return fs::weakly_canonical(file.parent_path(), none) / file.filename();
    };
    return resolved(a) == resolved(b);
}

}  // namespace kbench
