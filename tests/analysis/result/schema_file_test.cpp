// What the table of fields gives: analysis/result/result.schema.json, and the tables of docs/schema.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "analysis/result/result_json.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

void expect_file(const std::string& path, const std::string& text) {
    const auto whole_path = std::filesystem::path(KBENCH_SOURCE_DIR) / path;
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(whole_path, std::ios::binary) << text;
    EXPECT_EQ(read_file(whole_path), text) << path << ": KBENCH_UPDATE_GOLDEN=1 writes it again";
}

/// "number from 0 or null", "list of [step](#step)"
std::string type_text(const Json& schema) {
    if (schema.contains("$ref")) {
        const std::string type = schema["$ref"].get<std::string>().substr(8);
        return fmt::format("[{0}](#{0})", type);
    }
    if (schema.contains("const")) return schema["const"];
    if (schema.contains("anyOf")) return type_text(schema["anyOf"][1]) + " or null";
    if (schema.contains("enum")) {
        std::string words;
        for (const Json& word : schema["enum"]) words += (words.empty() ? "" : ", ") + word.get<std::string>();
        return "one of " + words;
    }
    const bool or_null = schema["type"].is_array();
    const std::string type = or_null ? schema["type"][0] : schema["type"];
    std::string text = type == "string" ? "text" : type == "boolean" ? "true or false" : type;
    if (type == "array") {
        text = schema.contains("maxItems") ? fmt::format("list of {} ", schema["maxItems"].dump()) : "list of ";
        text += type_text(schema["items"]);
    }
    if (type == "object")
        text = schema.contains("properties") ? type_text(*schema["properties"].begin()) + " by role"
                                             : type_text(schema["additionalProperties"]) + " by name";
    if (schema.contains("minimum")) text += " from " + schema["minimum"].dump();
    if (schema.contains("exclusiveMinimum")) text += " above " + schema["exclusiveMinimum"].dump();
    return or_null ? text + " or null" : text;
}

/// What a field is; where it has no text of its own, what its type is.
std::string what_text(const Json& schema, const Json& types) {
    const std::string type = schema.contains("$ref") ? schema["$ref"].get<std::string>().substr(8) : "";
    std::string text =
        schema.value("description", type.empty() || type == "quantity" ? "" : types[type].value("description", ""));
    if (schema.contains("was")) text += fmt::format("; `{}` in older files", schema["was"].get<std::string>());
    return text;
}

/// A heading, what it is and a table of its fields.
std::string object_markdown(const std::string& name, const Json& object, const Json& types) {
    std::string text = fmt::format("### {}\n\n{}.\n\n| field | holds | what it is |\n|---|---|---|\n", name,
                                   object["description"].get<std::string>());
    for (const auto& [field, schema] : object["properties"].items()) {
        const bool needed = std::ranges::find(object["required"], Json(field)) != object["required"].end();
        text += fmt::format("| `{}`{} | {} | {} |\n", field, needed ? "" : " (optional)", type_text(schema),
                            what_text(schema, types));
    }
    return text + "\n";
}

TEST(SchemaFile, IsWhatTheTableOfFieldsGives) {
    expect_file("analysis/result/result.schema.json", to_text(result_json_schema(), 150));
}

TEST(SchemaFile, IsToldFieldByFieldInItsPage) {
    const Json schema = result_json_schema();
    const Json& types = schema["$defs"];
    std::string tables = object_markdown("result", schema, types);
    for (const auto& [name, object] : types.items()) tables += object_markdown(name, object, types);
    const std::string page = read_file(std::filesystem::path(KBENCH_SOURCE_DIR) / "docs/schema.md");
    const std::string begin = "## Fields\n\n", end = "## Exit codes\n";
    ASSERT_LT(page.find(begin), page.find(end));
    ASSERT_NE(page.find(end), std::string::npos);
    expect_file("docs/schema.md", page.substr(0, page.find(begin)) + begin + tables + page.substr(page.find(end)));
}

}  // namespace
}  // namespace kbench
