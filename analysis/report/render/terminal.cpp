// Documents as plain text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/report/render/render.h"
#include "models/base/format.h"

namespace kbench {
namespace {

class Terminal {
  public:
    explicit Terminal(std::size_t width) : width_(width) {}

    void add(const Section& section, std::size_t depth) {
        const std::string indent(2 * depth, ' ');
        if (!text_.empty()) text_ += '\n';
        if (!section.title.empty()) text_ += wrap(indent, one_line(section.title), width_);
        indent_ = 2 * (depth + (section.title.empty() ? 0 : 1));
        const Block* before = nullptr;
        for (const Block& block : section.blocks) {
            // A table stands apart from the sentences before it and from the list after it.
            const bool is_table = std::holds_alternative<Rows>(block);
            if (before != nullptr &&
                (is_table ? std::holds_alternative<Paragraph>(*before)
                          : std::holds_alternative<Rows>(*before) && std::holds_alternative<Bullets>(block)))
                text_ += '\n';
            std::visit([this](const auto& one) { add(one); }, block);
            before = &block;
        }
        for (const Section& below : section.sections) add(below, depth + 1);
    }

    std::string text() && { return std::move(text_); }

  private:
    std::string indent() const { return std::string(indent_, ' '); }

    void add(const Paragraph& paragraph) {
        if (paragraph.text.empty()) return;
        if (paragraph.tone == Tone::missing)
            text_ += wrap(indent(), one_line(fmt::format("Unavailable: {}.", paragraph.text)), width_);
        else
            text_ +=
                wrap(indent() + (paragraph.tone == Tone::warning ? "warning: " : ""), one_line(paragraph.text), width_);
    }

    void add(const Bullets& bullets) {
        for (const std::string& item : bullets.items) text_ += wrap(indent() + "- ", one_line(item), width_);
    }

    void add_labelled(std::string_view label, const std::string& value) {
        text_ += wrap(fmt::format("{}{:<13} ", indent(), label), one_line(value), width_);
    }

    void add(const Facts& facts) {
        std::vector<std::string> together;
        std::vector<std::pair<std::string, std::vector<std::string>>> remarks;
        for (const Fact& fact : facts.facts) {
            if (!fact.value.empty()) {
                if (facts.together.empty())
                    add_labelled(fact.label, fact.value);
                else
                    together.push_back(fact.label + " " + fact.value);
            }
            if (!fact.origin.starts_with("estimated") && !fact.origin.starts_with("unavailable")) continue;
            const auto same = [&fact](const auto& remark) { return remark.first == fact.origin; };
            const auto found = std::ranges::find_if(remarks, same);
            auto& remark =
                found == remarks.end() ? remarks.emplace_back(fact.origin, std::vector<std::string>()) : *found;
            remark.second.push_back(fact.label);
        }
        if (!together.empty()) add_labelled(facts.together, fmt::format("{}", fmt::join(together, ", ")));
        for (const auto& [origin, labels] : remarks)
            add_labelled("", fmt::format("{}: {}", fmt::join(labels, ", "), origin));
    }

    void add(const Rows& rows) {
        if (rows.rows.empty()) return;
        if (!rows.caption.empty()) text_ += wrap(indent(), one_line(rows.caption), width_);
        Table table(rows.columns);
        for (const std::vector<std::string>& row : rows.rows) {
            std::vector<std::string> cells;
            for (const std::string& cell : row) cells.push_back(one_line(cell));
            table.add_row(std::move(cells));
        }
        text_ += table.text(indent_, width_);
    }

    void add(const Chart&) {}

    std::size_t width_, indent_ = 0;
    std::string text_;
};

}  // namespace

std::string render_terminal(const Document& document, std::size_t width) {
    Terminal terminal(std::max<std::size_t>(width, 40));
    const Document shown = as_text(document);
    for (const Section& section : shown.sections) terminal.add(section, 0);
    return std::move(terminal).text();
}

}  // namespace kbench
