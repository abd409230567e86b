// The JSON Schema of what tables of fields describe, and so of result.json.
#include "analysis/result/result_fields.h"
#include "analysis/result/result_json.h"

namespace kbench::fields {

Json describe_object(const Object& object, Json& types) {
    const std::string type(object.name);
    if (!types.contains(type)) {
        types[type] = nullptr;  // stands before those that it holds
        Json needed = Json::array(), properties = Json::object();
        for (const Field& field : object.list) {
            Json property = field.describe(field.rule, types);
            if (!field.text.empty()) property["description"] = field.text;
            if (!field.rule.was.empty()) property["was"] = field.rule.was;
            if (field.rule.optional == 0) needed.push_back(field.name);
            properties[std::string(field.name)] = std::move(property);
        }
        types[type] = {{"description", object.text},
                       {"type", "object"},
                       {"additionalProperties", false},
                       {"required", needed},
                       {"properties", properties}};
    }
    return {{"$ref", "#/$defs/" + type}};
}

Json number_schema(const Rule& rule, std::string_view type) {
    Json schema{{"type", type}};
    if (rule.null_if_not_finite) schema = or_null(schema);
    if (rule.above) schema["exclusiveMinimum"] = *rule.above;
    if (rule.least || (type == "integer" && !rule.above)) schema["minimum"] = rule.least.value_or(0);
    return schema;
}

Json words_schema(std::span<const std::string_view> words) {
    if (words.empty()) return {{"type", "string"}};
    return {{"enum", std::vector<std::string_view>(words.begin(), words.end())}};
}

Json or_null(Json schema) {
    if (!schema.contains("type")) return {{"anyOf", Json::array({{{"type", "null"}}, schema})}};
    schema["type"] = Json::array({schema["type"], "null"});
    return schema;
}

}  // namespace kbench::fields

namespace kbench {

nlohmann::ordered_json result_json_schema() {
    fields::Json types;
    describe_object(fields::result_object(), types);
    types["quantity"].update({{"if", {{"properties", {{"origin", {{"const", "unavailable"}}}}}}},
                              {"then", {{"properties", {{"value", {{"type", "null"}}}}}}},
                              {"else", {{"properties", {{"value", {{"type", "number"}}}}}}}});
    fields::Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
    schema.update(types["result"]);
    schema["required"].insert(schema["required"].begin(), "schema");
    schema["properties"]["schema"] = {{"const", result_schema}};
    types.erase("result");
    schema["$defs"] = types;
    return schema;
}

}  // namespace kbench
