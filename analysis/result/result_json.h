// result.json: writing and reading it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "kbench/result.h"

namespace kbench {

/// Field by field as result.h, with "schema" first. Raw samples are kept.
nlohmann::ordered_json to_json(const Result& result);

/// The text of result.json: to_json, indented, with what is short (a step, a summary, a list of samples) on one line.
std::string to_text(const Result& result);

/// Any JSON likewise: what is longer than a line may be is spread over several.
std::string to_text(const nlohmann::ordered_json& json, std::size_t longest_line);

/// The JSON Schema of the files that are written; result.schema.json holds its text.
nlohmann::ordered_json result_json_schema();

/// `text` is JSON, or JSON that gzip compressed. Throws UsageError, one line: neither, a foreign or newer schema, a
/// missing or wrong field (with its path).
Result parse_result(const std::string& text, const std::string& path);

/// The ceilings alone, as they stand in result.json; for files that remember them.
nlohmann::ordered_json ceilings_to_json(const CeilingRun& run);
/// Throws UsageError as parse_result does; `path` names the file in its line.
CeilingRun parse_ceilings(const nlohmann::ordered_json& json, const std::string& path);

}  // namespace kbench
