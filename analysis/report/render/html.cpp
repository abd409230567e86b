// A page is assembled from its template.
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "analysis/report/render/render.h"
#include "kbench/error.h"
#include "models/base/base64.h"
#include "models/base/gzip.h"

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

std::string packed(const nlohmann::ordered_json& document) {
    return base64(gzip(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
}

nlohmann::ordered_json page_document(std::string_view page) {
    constexpr std::string_view begin = "id=\"data\">", end = "</script>";
    const std::size_t found = page.find(begin), from = found + begin.size();
    if (found == std::string_view::npos) return nullptr;
    const std::string_view data = page.substr(from, page.find(end, from) - from);
    const std::optional<std::string> bytes = from_base64(data);
    const bool is_packed = bytes && is_gzip(*bytes);
    try {
        const std::string text = is_packed ? gunzip(*bytes, "report.html") : std::string(data);
        return nlohmann::ordered_json::parse(text, nullptr, false);
    } catch (const Error&) {  // cut off
        return nullptr;
    }
}

std::string render_html(const Document& document) {
    const std::string title = escape_html(document.title), data = packed(document_json(document));
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
