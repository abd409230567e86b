// result.json from and to a Result: its text, its versions, and what older files said otherwise. Which fields there
// are: result_fields.cpp.
#include "analysis/result/result_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <utility>

#include "analysis/result/result_fields.h"
#include "kbench/error.h"
#include "models/base/gzip.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using fields::Json;
using fields::Path;

/// The document's JSON.
Json parse_json(const std::string& text, const std::string& path) {
    check_json_text(text, path, most_ordered_members);
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        throw UsageError(fmt::format("{}: not JSON: {}", path, parser_message(error)));
    }
}

constexpr std::string_view family = result_schema.substr(0, result_schema.find('/') + 1);

/// The number after the family's name, 0 for another family.
int version_of(std::string_view schema) {
    int number = 0;
    if (schema.starts_with(family))
        std::from_chars(schema.data() + family.size(), schema.data() + schema.size(), number);
    return number;
}

/// Counters that were once named for what they are not.
constexpr std::pair<std::string_view, std::string_view> renamed_counters[] = {
    {"tensor_active", "tensor_pipe_active"},  // moves of constants run on that pipe, too
    {"tensor_hmma_inst", "tensor_pipe_inst"},
    {"sm_active", "smsp_active"},  // a column of that name is of the timing run's time
};
void rename_counters(Result& result) {
    for (Point& point : result.points)
        for (const auto& [before, after] : renamed_counters) {
            for (CountedMetric& metric : point.counters.metrics)
                if (metric.name == before) metric.name = after;
            for (StepResult& step : point.steps)
                if (auto counted = step.counters.extract(std::string(before)); !counted.empty()) {
                    counted.key() = after;
                    step.counters.insert(std::move(counted));
                }
        }
}

/// The version of the document's schema. Throws unless it is one that this version of kbench reads.
int schema_version(const Json& json, const std::string& path) {
    if (!json.is_object() || !json.contains("schema"))
        throw UsageError(fmt::format("{}: not a kbench result (no \"schema\")", path));
    const Json& found = json["schema"];
    const std::string schema = found.is_string() ? found.get<std::string>() : std::string();
    const int version = version_of(schema);
    if (version > version_of(result_schema))
        throw UsageError(
            fmt::format("{}: schema {} is newer than {}; use a newer kbench", path, schema, result_schema));
    if (version < 1 || schema != fmt::format("{}{}", family, version))
        throw UsageError(fmt::format("{}: not a kbench result (\"schema\" is {}, not \"{}\")", path,
                                     fields::shown(found), result_schema));
    return version;
}

void append_text(const Json& json, const std::string& indent, std::size_t longest, std::string& text) {
    const bool numbers = json.is_array() && !json.empty() && json.front().is_number();
    const bool nested = json.is_structured() && !json.empty() && !numbers;
    std::string line = nested && indent.size() <= 2 ? "" : json.dump();
    if (!nested || (indent.size() > 2 && line.size() <= longest)) {
        text += line;
        return;
    }
    const std::string inner = indent + "  ";
    text += json.is_array() ? "[" : "{";
    std::string_view separator = "\n";
    for (const auto& [key, value] : json.items()) {
        text += separator;
        text += inner;
        if (json.is_object()) text += Json(key).dump() + ": ";
        append_text(value, inner, longest, text);
        separator = ",\n";
    }
    text += "\n" + indent + (json.is_array() ? "]" : "}");
}

/// Before version 6 intervals took all samples as independent: they are computed again where the samples are there.
void mend_intervals(Result& result) {
    const auto mend = [](Timing& timing) {
        if (!timing.samples_ms.empty()) timing.summary_ms = summarise(timing.samples_ms);
    };
    double target = 0.005;  // where a version did not record it
    if (const auto found = result.options.find("target_relative_ci"); found != result.options.end())
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), target);
    for (Point& point : result.points) {
        for (MarginalCost& marginal : point.marginal) mend(marginal.difference_ms);
        if (!point.end_to_end) continue;
        EndToEnd& times = *point.end_to_end;
        mend(times.latency);
        times.counted_independent = false;
        times.converged = times.converged && times.latency.summary_ms.relative_ci() <= target;
        for (auto* timing : {&times.stream, &times.enqueue, &times.host_to_device, &times.device_to_host})
            if (*timing) mend(**timing);
    }
}

}  // namespace

Json to_json(const Result& result) {
    Json json{{"schema", result_schema}};
    json.update(write_object(fields::result_object(), &result, Path{}));
    return json;
}

std::string to_text(const Json& json, std::size_t longest_line) {
    std::string text;
    append_text(json, "", longest_line, text);
    return text + "\n";
}

// Steps are the bulk of a file; one on a line is what a person compares and a diff shows.
std::string to_text(const Result& result) { return to_text(to_json(result), 1400); }

Result parse_result(const std::string& text, const std::string& path) {
    Json json = is_gzip(text) ? parse_json(gunzip(text, path), path) : parse_json(text, path);
    const int version = schema_version(json, path);
    json.erase("schema");
    Result result;
    read_object(fields::result_object(), &result, json, Path{path, version});
    if (version < 6) mend_intervals(result);
    rename_counters(result);
    return result;
}

Json ceilings_to_json(const CeilingRun& run) { return write_object(fields::ceiling_run_object(), &run, Path{}); }

CeilingRun parse_ceilings(const Json& json, const std::string& path) {
    CeilingRun run;
    read_object(fields::ceiling_run_object(), &run, json, Path{path, version_of(result_schema)});
    return run;
}

}  // namespace kbench
