// `kbench compare --format json`: every figure of the comparison, in full precision.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/report/writers.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

Json json_of(const Interval& interval) {
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}
Json json_of(const std::optional<Interval>& interval) { return interval ? json_of(*interval) : Json(); }

Json json_of(const std::optional<Roof>& roof) {
    if (!roof) return nullptr;
    return {{"ceiling", roof->ceiling}, {"per_s", roof->per_s}, {"origin", name(roof->origin)}};
}

Json json_of(const PointRoofs& roofs) {
    return {{"unavailable", roofs.unavailable},
            {"dram", json_of(roofs.bandwidth)},
            {"matrix", json_of(roofs.matrix)},
            {"plain", json_of(roofs.plain)}};
}

Json json_of(const RatioTest& test) {
    return {{"bandwidth_ratio", or_null(test.bandwidth)},
            {"flops_ratio", or_null(test.flops)},
            {"fits_bandwidth", test.fits_bandwidth},
            {"fits_flops", test.fits_flops},
            {"follows", name(test.fit)}};
}

Json json_of(const GroupSide& side) {
    Json bounds = Json::object();
    for (std::size_t i = 0; i < side.bound_us.size(); ++i)
        if (side.bound_us[i] > 0) bounds[std::string(bound_names[i])] = side.bound_us[i];
    return {{"steps", side.steps},
            {"time_us", json_of(side.time_us)},
            {"flops", side.flops},
            {"dram_bytes", side.dram_bytes},
            {"dram_origin", name(side.dram_origin)},
            {"tflop_per_s", json_of(side.tflop_per_s())},
            {"dram_gb_per_s", json_of(side.dram_gb_per_s())},
            {"time_us_by_verdict", bounds}};
}

Json json_of(const GroupComparison& group) {
    return {{"name", group.name},
            {"a", json_of(group.a)},
            {"b", json_of(group.b)},
            {"time_ratio", json_of(group.ratio)},
            {"tflop_per_s_ratio", json_of(quotient(group.b.tflop_per_s(), group.a.tflop_per_s()))},
            {"dram_gb_per_s_ratio", json_of(quotient(group.b.dram_gb_per_s(), group.a.dram_gb_per_s()))},
            {"test", json_of(group.test)}};
}

Json json_of(const PointSide& side) {
    Json shares = Json::object();
    for (std::size_t i = 0; i < fit_count; ++i) shares[std::string(fit_names[i])] = side.fit[i];
    const std::optional<Verdict>& verdict = side.verdict;
    return {{"latency_ms", json_of(side.ms)},
            {"roofs", json_of(side.roofs)},
            {"steps", json_of(side.all)},
            {"time_share_by_fit", shares},
            {"unmatched_us", side.unmatched_us},
            {"verdict", verdict ? Json(name(verdict->bound)) : Json()},
            {"bandwidth_bound", verdict ? Json(name(side.bandwidth.answer)) : Json()}};
}

Json json_of(const PointComparison& point, std::size_t top) {
    Json evidence = Json::array(), groups = Json::array();
    for (const Evidence& sentence : point.evidence)
        evidence.push_back({{"about", sentence.about}, {"text", sentence.text}});
    for (std::size_t g = 0; g < std::min(top, point.groups.size()); ++g) groups.push_back(json_of(point.groups[g]));
    Json json = Json::object();
    for (const auto& [axis, value] : told_axes(*point.a.point))
        std::visit([&, name = std::string(axis->name)](const auto& plain) { json[name] = plain; }, value);
    json.update(Json{{"latency_ratio", json_of(point.ratio)},
                     {"change", point.change ? Json(name(*point.change)) : Json()},
                     {"cannot_tell_below", point.spread ? Json(point.spread->least_difference()) : Json()},
                     {"cannot_tell_basis", point.spread ? Json(point.spread->basis) : Json()},
                     {"other_card", point.other_card},
                     {"same_roofs", point.same_roofs},
                     {"naive_test", json_of(point.naive)},
                     {"evidence", evidence},
                     {"a", json_of(point.a)},
                     {"b", json_of(point.b)},
                     {"groups", groups},
                     {"groups_left_out", point.groups.size() - std::min(top, point.groups.size())}});
    return json;
}

Json json_of(const ValueTable& table, const Comparison& comparison) {
    Json rows = Json::array();
    for (const ValueRow& row : table.rows) {
        Json json{{"run", comparison.runs[row.run]->name}, {"latency_ms", json_of(row.latency_ms)}};
        if (row.sequences_per_s) {
            json["sequences_per_s"] = *row.sequences_per_s;
            json["dollars_per_million_sequences"] = json_of(row.dollars_per_million_sequences);
            json["dollars_per_million_tokens"] = json_of(row.dollars_per_million_tokens);
        }
        json["latency_bandwidth_gb"] = or_null(row.latency_bandwidth_gb);
        if (row.sequences_per_s) {
            const Quantity energy = row.energy_per_sequence_j.value_or(Quantity());
            json["energy_per_sequence_j"] = or_null(energy.value);
            json["energy_origin"] = name(energy.origin);
        }
        rows.push_back(std::move(json));
    }
    return {{"point", match_title(*table.point)}, {"rows", rows}};
}

}  // namespace

std::string write_comparison_json(const Comparison& comparison, std::optional<std::size_t> top) {
    Json runs = Json::array(), pairs = Json::array(), values = Json::array();
    for (const NamedResult* run : comparison.runs) runs.push_back({{"name", run->name}, {"path", run->path}});
    for (const PairComparison& pair : comparison.pairs) {
        Json points = Json::array();
        for (const PointComparison& point : pair.points)
            points.push_back(json_of(point, top.value_or(point.groups.size())));
        pairs.push_back({{"a", comparison.runs[0]->name},
                         {"b", comparison.runs[pair.b]->name},
                         {"points", points},
                         {"left_out", pair.left_out}});
    }
    for (const ValueTable& table : comparison.values) values.push_back(json_of(table, comparison));
    const Json document{{"runs", runs},
                        {"by", compare_by_names[static_cast<std::size_t>(comparison.options.by)]},
                        {"fail_above", or_null(comparison.options.fail_above)},
                        {"fit_tolerance", fit_tolerance},
                        {"pairs", pairs},
                        {"values", values},
                        {"regressions", comparison.regressions}};
    // A file's name may hold bytes that are not UTF-8.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace kbench
