// Renderers of documents. Each is all that knows its format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "analysis/report/document.h"

namespace kbench {

/// Plain text of at most `width` columns where words allow it: a section's blocks below its title, two spaces further
/// in. Of facts those without a value, and those that are estimated, are told once for each reason, after the others.
std::string render_terminal(const Document& document, std::size_t width);

/// GitHub's Markdown.
std::string render_markdown(const Document& document);

/// One file that needs no network: a template, a style sheet, scripts and plotly.js, which are embedded in the binary
/// (analysis/report/page/, cmake/embed_report.cmake), and the document, packed.
std::string render_html(const Document& document);

/// The document as the scripts of the page read it: {title, sections: [{id, title, blocks, sections}]}; a block has a
/// `kind`. Numbers have six significant digits; what is not finite is null.
nlohmann::ordered_json document_json(const Document& document);

/// A document as a page holds it, by gzip and in base64: an eighth of the JSON, since points of a sweep repeat each
/// other, and no character that HTML reads.
std::string packed(const nlohmann::ordered_json& document);

/// The document that a page holds, packed or, as older versions did, as JSON; discarded or null where it holds none.
nlohmann::ordered_json page_document(std::string_view page);

/// Text for an element or a quoted attribute.
std::string escape_html(std::string_view text);

}  // namespace kbench
