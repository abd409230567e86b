// What a report says, apart from how it looks: sections of paragraphs, lists, facts, tables and charts. A section is
// made by one file of sections/; the renderers in render/ know these blocks and no section. All text is plain: a
// renderer escapes what would be markup to it. What only the page shows, charts and what is long, text leaves out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/report/chart.h"
#include "analysis/table/table.h"

namespace kbench {

/// How much a document says: the answer on one screen and a summary are for a terminal, the whole for a file.
enum class Depth { screen, summary, full };

enum class Tone { plain, missing, warning, lead };

struct Paragraph {
    std::string text;
    /// missing: the text is why something is not there, without a full stop; lead: what a reader came for
    Tone tone = Tone::plain;
};

struct Bullets {
    std::vector<std::string> items;
};

/// A figure or a property under its name.
struct Fact {
    std::string label;
    std::string value;   ///< empty where there is none
    std::string origin;  ///< "measured", "estimated: why", "unavailable: why"; empty for what is no figure
};

/// Facts with neither value nor origin are left out.
struct Facts {
    std::vector<Fact> facts;
    /// Where space is short, all of them on one line under this name.
    std::string together = {};
    std::string label_header = "what";  ///< stands over the labels, where a renderer needs one
};

/// Columns of figures, of words, and of names of layers or kernels.
inline TableColumn figures(std::string header, int droppable = 0) {
    return {std::move(header), Align::right, droppable};
}
inline TableColumn words(std::string header, int droppable = 0, bool shortens = false) {
    return {std::move(header), Align::left, droppable, shortens};
}
inline TableColumn names(std::string header) { return {std::move(header), Align::left, 0, false, true}; }

/// A column whose cells are all empty is left out: `Rows{{names("layer"), figures("ms")}, {{"lm_head", "0.4"}}}`.
struct Rows {
    std::vector<TableColumn> columns;
    std::vector<std::vector<std::string>> rows = {};
    std::string caption = {};
    std::vector<std::optional<std::size_t>> keys = {};  ///< by row, see chart.h; empty where rows have none
    bool is_long = false;                               ///< only on the page, where it is sorted and filtered
    std::vector<std::string> filters = {};              ///< headers of columns by whose values, too
};

using Block = std::variant<Paragraph, Bullets, Facts, Rows, Chart>;
bool is_nothing(const Block& block);  ///< and is not shown

/// Left out where it holds nothing.
struct Section {
    std::string title;  ///< may be empty: then there is no heading
    std::vector<Block> blocks = {};
    std::vector<Section> sections = {};
    std::string choice = {};  ///< what is chosen where `sections` are alternatives: a page shows one at a time
    bool is_folded = false;   ///< a page shows its title until it is opened
    bool is_only_on_page = false;

    bool empty() const;
    void add(Block block) { blocks.push_back(std::move(block)); }
    void add(Section section) {
        if (!section.empty()) sections.push_back(std::move(section));
    }
};

/// A section that says why it has nothing else to say.
inline Section missing_section(std::string title, std::string why) {
    return {std::move(title), {Paragraph{std::move(why), Tone::missing}}};
}

struct Document {
    std::string title;
    std::vector<Section> sections;
};

/// Without what only the page shows, and without sections that then hold nothing.
Document as_text(Document document);

}  // namespace kbench
