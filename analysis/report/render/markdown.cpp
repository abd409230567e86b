// Documents as GitHub's Markdown.
#include "analysis/report/markdown_text.h"
#include "analysis/report/render/render.h"

namespace kbench {
namespace {

std::string markdown_of(const Paragraph& paragraph) {
    if (paragraph.text.empty()) return {};
    const std::string text = markdown_text(paragraph.text);
    return (paragraph.tone == Tone::missing ? "Unavailable: " + text + "." : text) + "\n\n";
}

/// In a cell no hyphen begins a list.
std::string cell_text(const std::string& cell) {
    const std::string text = markdown_text(cell);
    return text.starts_with("\\-") ? text.substr(1) : text;
}

std::string markdown_of(const Bullets& bullets) {
    std::string text;
    for (const std::string& item : bullets.items) text += "- " + markdown_text(item) + '\n';
    return text.empty() ? text : text + '\n';
}

std::string markdown_of(const Rows& rows) {
    MarkdownTable table(rows.columns);
    for (const std::vector<std::string>& row : rows.rows) {
        std::vector<std::string> cells;
        for (std::size_t i = 0; i < row.size(); ++i)
            cells.push_back(rows.columns[i].is_name ? markdown_name(row[i]) : cell_text(row[i]));
        table.add_row(std::move(cells));
    }
    if (rows.rows.empty()) return {};
    return (rows.caption.empty() ? "" : markdown_text(rows.caption) + "\n\n") + table.text().substr(1);
}

std::string markdown_of(const Facts& facts) {
    Rows rows{{{facts.label_header, Align::left}, {"value", Align::left}, {"origin", Align::left}}, {}};
    for (const Fact& fact : facts.facts)
        if (!fact.value.empty() || !fact.origin.empty())
            rows.rows.push_back({fact.label, fact.value.empty() ? "unavailable" : fact.value, fact.origin});
    return markdown_of(rows);
}

std::string markdown_of(const Chart&) { return {}; }

std::string markdown_of(const Section& section, std::size_t level) {
    std::string text;
    if (!section.title.empty()) text += std::string(level, '#') + ' ' + markdown_text(section.title) + "\n\n";
    for (const Block& block : section.blocks)
        text += std::visit([](const auto& one) { return markdown_of(one); }, block);
    for (const Section& below : section.sections) text += markdown_of(below, level + (section.title.empty() ? 0 : 1));
    return text;
}

}  // namespace

std::string render_markdown(const Document& document) {
    std::string text = "# " + markdown_text(document.title) + "\n\n";
    const Document shown = as_text(document);
    for (const Section& section : shown.sections) text += markdown_of(section, 2);
    text.pop_back();  // one line feed ends the file
    return text;
}

}  // namespace kbench
