// Documents as the scripts of report.html read them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

Json json_part(const Paragraph& paragraph) {
    constexpr const char* tones[] = {"plain", "missing", "warning", "lead"};
    return {{"kind", "paragraph"}, {"text", paragraph.text}, {"tone", tones[static_cast<int>(paragraph.tone)]}};
}

Json json_part(const Bullets& bullets) { return {{"kind", "bullets"}, {"items", bullets.items}}; }

Json json_part(const Facts& facts) {
    Json list = Json::array();
    for (const Fact& fact : facts.facts)
        if (!fact.value.empty() || !fact.origin.empty())
            list.push_back({{"label", fact.label}, {"value", fact.value}, {"origin", fact.origin}});
    return {{"kind", "facts"}, {"facts", std::move(list)}};
}

Json json_part(const Rows& rows) {
    Json columns = Json::array(), cells(rows.rows.size(), Json::array());
    for (std::size_t i = 0; i < rows.columns.size(); ++i) {
        const TableColumn& column = rows.columns[i];
        if (std::ranges::all_of(rows.rows, [i](const auto& row) { return row[i].empty(); })) continue;
        for (std::size_t row = 0; row < rows.rows.size(); ++row) cells[row].push_back(rows.rows[row][i]);
        const bool is_prose = std::ranges::any_of(rows.rows, [i](const auto& row) { return row[i].size() > 24; });
        columns.push_back({{"header", column.header},
                           {"style", column.is_name                 ? "name"
                                     : column.align == Align::right ? "right"
                                     : is_prose                     ? "wide"
                                                                    : ""}});
    }
    return {{"kind", "table"}, {"caption", rows.caption}, {"columns", std::move(columns)}, {"rows", std::move(cells)}};
}

Json json_part(const Chart&) { return nullptr; }

}  // namespace

Json render_json(const Section& section) {
    Json blocks = Json::array(), sections = Json::array();
    for (const Block& block : section.blocks)
        blocks.push_back(std::visit([](const auto& one) { return json_part(one); }, block));
    for (const Section& below : section.sections) sections.push_back(render_json(below));
    return {{"title", section.title}, {"blocks", std::move(blocks)}, {"sections", std::move(sections)}};
}

}  // namespace kbench
