// A page is assembled from its template.
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "analysis/report/render/render.h"

// The bounds of what cmake/embed_report.cmake embeds.
extern "C" {
extern const char kbench_report_page_begin[], kbench_report_page_end[];
extern const char kbench_report_style_begin[], kbench_report_style_end[];
extern const char kbench_report_plotly_begin[], kbench_report_plotly_end[];
extern const char kbench_report_script_begin[], kbench_report_script_end[];
}

namespace kbench {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

/// Replaces each {{name}} of the template once; what is put in is not searched.
std::string fill(std::string_view page, std::span<const std::pair<std::string_view, std::string_view>> parts) {
    std::string filled;
    for (std::size_t at = 0;;) {
        const std::size_t begin = page.find("{{", at);
        filled += page.substr(at, begin - at);
        if (begin == std::string_view::npos) return filled;
        const std::size_t end = page.find("}}", begin);
        const std::string_view name = page.substr(begin + 2, end - begin - 2);
        bool known = false;
        for (const auto& [part, text] : parts)
            if (part == name) filled += text, known = true;
        if (!known) throw std::logic_error("report.html has an unknown {{" + std::string(name) + "}}");
        at = end + 2;
    }
}

}  // namespace

std::string escape_html(std::string_view text) {
    std::string escaped;
    for (const char c : text) switch (c) {
            case '&': escaped += "&amp;"; break;
            case '<': escaped += "&lt;"; break;
            case '>': escaped += "&gt;"; break;
            case '"': escaped += "&quot;"; break;
            case '\'': escaped += "&#39;"; break;
            default: escaped += c;
        }
    return escaped;
}

std::string script_json(const nlohmann::ordered_json& data) {
    // Outside strings JSON has none of these characters. Bytes that are not UTF-8 become U+FFFD. All that is not ASCII
    // is escaped by the library, U+2028 and U+2029 too.
    const std::string json = data.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
    std::string escaped;
    escaped.reserve(json.size());
    for (const char c : json) switch (c) {
            case '<': escaped += "\\u003c"; break;
            case '>': escaped += "\\u003e"; break;
            case '&': escaped += "\\u0026"; break;
            default: escaped += c;
        }
    return escaped;
}

std::string render_html(const Document& document) {
    const std::string title = escape_html(document.title), data = script_json(document_json(document));
    const std::pair<std::string_view, std::string_view> parts[] = {
        {"title", title},
        {"data", data},
        {"style", between(kbench_report_style_begin, kbench_report_style_end)},
        {"plotly", between(kbench_report_plotly_begin, kbench_report_plotly_end)},
        {"script", between(kbench_report_script_begin, kbench_report_script_end)},
    };
    return fill(between(kbench_report_page_begin, kbench_report_page_end), parts);
}

}  // namespace kbench
