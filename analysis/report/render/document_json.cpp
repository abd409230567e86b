// Documents as the scripts of a page read them: page/*.js know these kinds of blocks and of charts, and no section.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(double value) {
    if (!std::isfinite(value)) return nullptr;
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}
Json json_of(std::size_t value) { return value; }
Json json_of(const std::string& text) { return text; }
template <class T>
Json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : Json();
}

template <class List>
Json list_of(const List& values) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(json_of(value));
    return list;
}

/// Columns rather than rows: one member of every element.
template <class List, class Value>
Json members_of(const List& list, Value List::value_type::*member) {
    Json column = Json::array();
    for (const auto& element : list) column.push_back(json_of(element.*member));
    return column;
}

Json json_of(const Paragraph& paragraph) {
    constexpr const char* tones[] = {"plain", "missing", "warning", "lead"};
    return {{"kind", "paragraph"}, {"text", paragraph.text}, {"tone", tones[static_cast<int>(paragraph.tone)]}};
}

Json json_of(const Bullets& bullets) { return {{"kind", "bullets"}, {"items", bullets.items}}; }

Json json_of(const Facts& facts) {
    Json list = Json::array();
    for (const Fact& fact : facts.facts)
        if (!fact.value.empty() || !fact.origin.empty())
            list.push_back({{"label", fact.label}, {"value", fact.value}, {"origin", fact.origin}});
    return {{"kind", "facts"}, {"facts", std::move(list)}};
}

Json json_of(const Rows& rows) {
    constexpr std::size_t prose = 24;  // characters: longer text may go over several lines
    Json columns = Json::array(), cells(rows.rows.size(), Json::array());
    for (std::size_t i = 0; i < rows.columns.size(); ++i) {
        const TableColumn& column = rows.columns[i];
        const auto any = [&](auto holds) {
            return std::ranges::any_of(rows.rows, [&](const auto& row) { return i < row.size() && holds(row[i]); });
        };
        if (!any([](const std::string& cell) { return !cell.empty(); })) continue;
        for (std::size_t row = 0; row < rows.rows.size(); ++row)
            cells[row].push_back(i < rows.rows[row].size() ? rows.rows[row][i] : "");
        const bool is_number = column.align == Align::right;
        const bool is_prose = any([](const std::string& cell) { return cell.size() > prose; });
        const char* style = column.is_name ? "name" : is_number ? "right" : is_prose ? "wide" : "";
        columns.push_back({{"header", column.header}, {"style", style}, {"number", is_number}});
        if (!column.what.empty()) columns.back()["what"] = column.what;
        if (std::ranges::find(rows.filters, column.header) != rows.filters.end()) columns.back()["filter"] = true;
    }
    Json json{
        {"kind", "table"}, {"caption", rows.caption}, {"columns", std::move(columns)}, {"rows", std::move(cells)}};
    if (!rows.keys.empty()) json["keys"] = list_of(rows.keys);
    if (rows.is_long) json["long"] = true;
    return json;
}

Json json_of(const ChartSeries& series, const char* values) {
    Json json{{"name", series.name}, {values, list_of(series.values)}};
    if (!series.low.empty()) json["low"] = list_of(series.low);
    if (!series.high.empty()) json["high"] = list_of(series.high);
    if (!series.hover.empty()) json["hover"] = series.hover;
    if (series.is_faint) json["faint"] = true;
    return json;
}

Json data_of(const BarChart& chart) {
    Json series = Json::array();
    for (const ChartSeries& one : chart.series) series.push_back(json_of(one, "values"));
    return {{"chart", chart.is_stacked ? "stacked" : "bars"},
            {"unit", chart.unit},
            {"labels", chart.labels},
            {"digits", chart.digits},
            {"series", std::move(series)}};
}

Json json_of(const ChartAxis& axis) { return {{"title", axis.title}, {"log", axis.is_log}, {"zero", axis.from_zero}}; }

Json data_of(const CurveChart& chart) {
    Json series = Json::array();
    for (const CurveSeries& one : chart.series) {
        series.push_back(json_of(one.y, "y"));
        series.back()["x"] = std::visit([](const auto& x) { return list_of(x); }, one.x);
    }
    return {{"chart", "curve"}, {"x", json_of(chart.x)}, {"y", json_of(chart.y)}, {"series", std::move(series)}};
}

Json data_of(const RooflineChart& chart) {
    Json roofs = Json::array();
    for (const ChartRoof& roof : chart.roofs)
        roofs.push_back({{"name", roof.name},
                         {"per_s", json_of(roof.per_s)},
                         {"is_bandwidth", roof.is_bandwidth},
                         {"origin", roof.origin}});
    const auto of = [&](auto member) { return members_of(chart.marks, member); };
    return {{"chart", "roofline"},
            {"roofs", std::move(roofs)},
            {"groups", chart.groups},
            {"layers", chart.layers},
            {"shapes", chart.shapes},
            {"off", chart.hidden_shapes},
            {"views", chart.views},
            {"view", of(&RooflineMark::view)},
            {"marks",
             {{"x", of(&RooflineMark::flop_per_byte)},
              {"y", of(&RooflineMark::flop_per_s)},
              {"group", of(&RooflineMark::group)},
              {"layer", of(&RooflineMark::layer)},
              {"shape", of(&RooflineMark::shape)},
              {"size", of(&RooflineMark::size)},
              {"label", of(&RooflineMark::label)},
              {"hover", of(&RooflineMark::hover)},
              {"key", of(&RooflineMark::key)}}}};
}

Json data_of(const HeatChart& chart) {
    Json columns = Json::array(), decimals = columns, values(chart.rows.size(), Json::array());
    for (const HeatColumn& column : chart.columns) {
        columns.push_back({{"header", column.header}, {"what", column.what}, {"most", json_of(column.most)}});
        decimals.push_back(column.decimals);
        for (std::size_t row = 0; row < chart.rows.size(); ++row) values[row].push_back(json_of(column.values[row]));
    }
    return {{"chart", "heat"},
            {"rows", chart.rows},
            {"columns", std::move(columns)},
            {"values", std::move(values)},
            {"decimals", std::move(decimals)}};
}

Json data_of(const TimelineChart& chart) {
    const auto of = [&](auto member) { return members_of(chart.bars, member); };
    Json json{{"chart", "timeline"},
              {"unit", chart.unit},
              {"groups", chart.groups},
              {"bars",
               {{"start", of(&TimelineBar::start)},
                {"length", of(&TimelineBar::length)},
                {"group", of(&TimelineBar::group)},
                {"hover", of(&TimelineBar::hover)},
                {"key", of(&TimelineBar::key)}}}};
    if (!chart.names.empty()) {
        json["names"] = chart.names;
        json["bars"]["name"] = of(&TimelineBar::name);
    }
    return json;
}

Json json_of(const Chart& chart) {
    Json json{{"kind", "chart"}, {"title", chart.title}, {"caption", chart.caption}};
    json.update(std::visit([](const auto& data) { return data_of(data); }, chart.data));
    return json;
}

/// "Time breakdown" is time-breakdown; what is taken already gets a number.
std::string slug(const std::string& title, const Json& neighbours) {
    std::string id;
    for (const char c : title)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!id.empty() && id.back() != '-')
            id += '-';
    if (!id.empty() && id.back() == '-') id.pop_back();
    const auto taken = [&](const std::string& name) {
        return std::ranges::any_of(neighbours, [&](const Json& other) { return other["id"] == name; });
    };
    std::string unique = id;
    for (int n = 2; !id.empty() && taken(unique); ++n) unique = fmt::format("{}-{}", id, n);
    return unique;
}

Json sections_of(const std::vector<Section>& sections) {
    Json list = Json::array();
    for (const Section& section : sections) {
        if (section.empty()) continue;
        Json blocks = Json::array();
        for (const Block& block : section.blocks)
            if (!is_nothing(block)) blocks.push_back(std::visit([](const auto& one) { return json_of(one); }, block));
        Json json{{"id", slug(section.title, list)}, {"title", section.title}};
        if (!section.choice.empty()) json["choice"] = section.choice;
        if (section.is_folded) json["folded"] = true;
        json["blocks"] = std::move(blocks);
        json["sections"] = sections_of(section.sections);
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace

nlohmann::ordered_json document_json(const Document& document) {
    return {{"title", document.title}, {"sections", sections_of(document.sections)}};
}

}  // namespace kbench
