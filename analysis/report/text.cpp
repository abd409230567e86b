// What is a document and nothing more: the summary for a terminal, report.md, report.html, `kbench ceilings`.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"

namespace kbench {

std::string write_screen(const ExplainedResult& explained, int width) {
    if (explained.result().study) return write_terminal(explained, width);
    return render_terminal(screen_of(explained), static_cast<std::size_t>(std::max(width, 0)));
}

std::string write_terminal(const ExplainedResult& explained, int width) {
    return render_terminal(summary_of(explained), static_cast<std::size_t>(std::max(width, 0)));
}

std::string write_markdown(const ExplainedResult& explained) { return render_markdown(report_of(explained)); }

std::string write_html(const ExplainedResult& explained) { return render_html(report_of(explained)); }

std::string write_ceilings(const CeilingRun& run, CeilingFormat format, std::size_t width) {
    Section section = ceilings_section(run);
    section.title.clear();
    switch (format) {
        case CeilingFormat::json: return ceilings_to_json(run).dump(2) + "\n";
        case CeilingFormat::markdown: return render_markdown({"Ceilings", {std::move(section)}});
        case CeilingFormat::text: break;
    }
    return render_terminal({"", {std::move(section)}}, width);
}

}  // namespace kbench
