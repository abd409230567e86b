// report.html: one file that needs no network. A template, a style sheet, scripts and plotly.js, which are embedded in
// the binary (analysis/report/page/, cmake/embed_report.cmake), and the result's figures as one block of JSON.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "kbench/result.h"

namespace kbench {

/// All that the page shows, as the scripts read it. Numbers have six significant digits; what is not finite is null.
nlohmann::ordered_json report_data(const ExplainedResult& explained);

/// The page with this data.
std::string html_page(const std::string& title, const nlohmann::ordered_json& json);

/// JSON for a <script> element: no character in it can end the element or open another.
std::string script_json(const nlohmann::ordered_json& data);

/// Text for an element or a quoted attribute.
std::string escape_html(std::string_view text);

}  // namespace kbench
