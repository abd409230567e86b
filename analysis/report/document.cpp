#include "analysis/report/document.h"

#include <algorithm>

namespace kbench {
namespace {

bool is_empty(const Paragraph& paragraph) { return paragraph.text.empty(); }
bool is_empty(const Bullets& bullets) { return bullets.items.empty(); }
bool is_empty(const Facts& facts) {
    return std::ranges::all_of(facts.facts, [](const Fact& fact) { return fact.value.empty() && fact.origin.empty(); });
}
bool is_empty(const Rows& rows) { return rows.rows.empty(); }
bool is_empty(const BarChart& chart) { return chart.labels.empty() || chart.series.empty(); }
bool is_empty(const CurveChart& chart) { return chart.series.empty(); }
bool is_empty(const RooflineChart& chart) { return chart.marks.empty(); }
bool is_empty(const HeatChart& chart) { return chart.rows.empty() || chart.columns.empty(); }
bool is_empty(const TimelineChart& chart) { return chart.bars.empty(); }
bool is_empty(const Chart& chart) {
    return std::visit([](const auto& data) { return is_empty(data); }, chart.data);
}

bool is_only_on_page(const Block& block) {
    const Rows* rows = std::get_if<Rows>(&block);
    return rows != nullptr ? rows->is_long : std::holds_alternative<Chart>(block);
}

void keep_text(std::vector<Section>& sections) {
    std::erase_if(sections, [](const Section& section) { return section.is_only_on_page; });
    for (Section& section : sections) {
        std::erase_if(section.blocks, is_only_on_page);
        keep_text(section.sections);
    }
    std::erase_if(sections, [](const Section& section) { return section.empty(); });  // a heading alone says nothing
}

}  // namespace

std::size_t place_in(std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    const auto place = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return place;
}

Document as_text(Document document) {
    keep_text(document.sections);
    return document;
}

bool is_nothing(const Block& block) {
    return std::visit([](const auto& one) { return is_empty(one); }, block);
}

bool Section::empty() const {
    return std::ranges::all_of(blocks, is_nothing) && std::ranges::all_of(sections, &Section::empty);
}

}  // namespace kbench
