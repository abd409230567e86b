// Writing and reading what a table of fields describes.
#include "analysis/result/json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "kbench/error.h"
#include "kbench/result.h"

namespace kbench::fields {
namespace {

[[noreturn]] void fail(const Path& path, std::string_view expected, std::string_view found) {
    const std::string where = path.text();
    throw UsageError(
        fmt::format("{}: {}expected {}, found {}", path.document, where.empty() ? "" : where + ": ", expected, found));
}

}  // namespace

std::string shown(const Json& json) {
    if (json.is_string()) return "a string";
    if (json.is_object()) return "an object";
    if (json.is_array()) return "an array";
    return json.dump();
}

std::string Path::text() const {
    if (!parent) return {};
    const std::string before = parent->text();
    if (key.empty()) return fmt::format("{}[{}]", before, index);
    return before.empty() ? std::string(key) : fmt::format("{}.{}", before, key);
}

void expect(bool holds, const Path& path, std::string_view expected, const Json& found) {
    if (!holds) fail(path, expected, shown(found));
}

Json write_object(const Object& object, const void* value, const Path& path) {
    Json json = Json::object();
    for (const Field& field : object.list) {
        Json written = field.write(static_cast<const char*>(value) + field.offset, path.field(field.name), field.rule);
        if (field.rule.optional == 0 || !written.empty()) json[std::string(field.name)] = std::move(written);
    }
    return json;
}

Json write_number(double value, const Path& path, const Rule& rule) {
    if (std::isfinite(value)) return value;
    if (rule.null_if_not_finite) return nullptr;
    throw MeasurementError(fmt::format("{} is {}; result.json holds finite numbers only", path.text(), value));
}

Json write_quantity(const Object& object, const Quantity& quantity, const Path& path) {
    const Quantity lost = Quantity::unavailable("the value is not finite");
    return write_object(object, quantity.value && !std::isfinite(*quantity.value) ? &lost : &quantity, path);
}

void read_object(const Object& object, void* value, const Json& json, const Path& path) {
    expect(json.is_object(), path, "an object", json);
    const auto find = [&](const Field& field) {
        const auto found = json.find(field.name);
        return found == json.end() && !field.rule.was.empty() ? json.find(field.rule.was) : found;
    };
    std::size_t known = 0;
    for (const Field& field : object.list) {
        const Path at = path.field(field.name);
        const Axis* const axis = field.rule.axis;
        void* const member = static_cast<char*>(value) + field.offset;
        if (const auto found = find(field); found != json.end()) {
            if (field.rule.optional != 0 && found->is_null()) fail(at, "a value", "null");
            field.read(member, *found, at, field.rule);
            ++known;
        } else if (!field.rule.may_lack(path.version)) {
            fail(at, "a value", "nothing");
        } else if (axis && path.version < axis->since && axis->usual && !axis->of_model) {
            // No model of an older file has an axis that came with a newer model.
            static_cast<AxisValues*>(member)->set(axis->name, *axis->usual);
        }
    }
    if (json.size() == known) return;
    for (auto item = json.begin(); item != json.end(); ++item) {
        if (std::ranges::any_of(object.list, [&](const Field& field) { return find(field) == item; })) continue;
        const auto today = std::ranges::find(object.list, std::string_view(item.key()),
                                             [](const Field& field) { return field.rule.was; });
        throw UsageError(fmt::format("{}: {}: {}", path.document, path.field(item.key()).text(),
                                     today == object.list.end()
                                         ? fmt::format("not a field of {}", result_schema)
                                         : fmt::format("the older name of {}, which is there too", today->name)));
    }
}

double read_number(const Json& json, const Path& path, const Rule& rule) {
    if (rule.null_if_not_finite && json.is_null()) return std::numeric_limits<double>::quiet_NaN();
    expect(json.is_number(), path, rule.null_if_not_finite ? "a number or null" : "a number", json);
    const auto number = json.get<double>();
    if (rule.above && number <= *rule.above) fail(path, fmt::format("a number above {}", *rule.above), json.dump());
    if (rule.least && number < *rule.least) fail(path, fmt::format("a number from {}", *rule.least), json.dump());
    return number;
}

std::uint64_t read_integer(const Json& json, const Path& path, std::int64_t least, std::uint64_t most) {
    expect(json.is_number_integer(), path, "an integer", json);
    const auto bits = json.get<std::uint64_t>();
    const bool is_negative = !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    const bool is_low =
        is_negative ? json.get<std::int64_t>() < least : least > 0 && bits < static_cast<std::uint64_t>(least);
    if (is_low || (!is_negative && bits > most))
        fail(path, fmt::format("an integer from {} to {}", least, most), json.dump());
    return bits;
}

std::size_t read_word(const Json& json, const Path& path, std::span<const std::string_view> words) {
    const auto found = json.is_string() ? std::ranges::find(words, json.get_ref<const std::string&>()) : words.end();
    if (found == words.end())
        fail(path, fmt::format("one of {}", fmt::join(words, ", ")), json.is_string() ? json.dump() : shown(json));
    return static_cast<std::size_t>(found - words.begin());
}

std::size_t read_role(const std::string& key, const Path& path) {
    const auto found = std::ranges::find(role_names, key);
    if (found == std::end(role_names))
        fail(path, fmt::format("only the roles {}", fmt::join(role_names, ", ")), fmt::format("\"{}\"", key));
    return static_cast<std::size_t>(found - role_names);
}

void read_quantity(const Object& object, Quantity& quantity, const Json& json, const Path& path, const Rule& rule) {
    read_object(object, &quantity, json, path);
    if (quantity.value.has_value() == (quantity.origin == Origin::unavailable))
        fail(path.field("value"), quantity.value ? "null for what is unavailable" : "a number", shown(json["value"]));
    if (rule.most != 0 && quantity.value && !(*quantity.value > 0 && *quantity.value <= rule.most))
        fail(path, fmt::format("a roof above 0, at most {:g}", rule.most), fmt::format("{}", *quantity.value));
}

void read_axis(AxisValues& values, const Json& json, const Path& path, const Axis& axis) {
    if (axis.kind == AxisKind::count) {
        std::int64_t count = 0;
        read(count, json, path, {.least = axis.least});
        return values.set(axis.name, count);
    }
    std::string text;
    if (axis.kind == AxisKind::word) read_word(json, path, axis.words);
    read(text, json, path, {});
    values.set(axis.name, text);
}

}  // namespace kbench::fields
