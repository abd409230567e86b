// How a struct stands in JSON: one table of its fields, from which it is written, read and described by a JSON Schema.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/axes.h"
#include "kbench/cost.h"
#include "kbench/quantity.h"
#include "models/base/json_text.h"

namespace kbench::fields {

using Json = nlohmann::ordered_json;

/// Where a value stands in a document. A chain of stack frames, so that no text is built unless an error needs it.
struct Path {
    std::string_view document;  ///< its name, which begins each error
    int version = 0;            ///< its schema's
    const Path* parent = nullptr;
    std::string_view key = {};  ///< empty: an array's element
    std::size_t index = 0;

    Path field(std::string_view name) const { return {document, version, this, name}; }
    Path element(std::size_t i) const { return {document, version, this, {}, i}; }
    std::string text() const;
};

/// A value as an error shows it.
std::string shown(const Json& json);
/// Throws UsageError, one line, unless `holds`.
void expect(bool holds, const Path& path, std::string_view expected, const Json& found);

/// What a field's C++ type does not say.
struct Rule {
    int since = 0;              ///< version of the schema that it came with, where that is not `optional`
    int optional = 0;           ///< from this version on it is not written without a value; 0: always written
    std::string_view was = {};  ///< its name in older files
    double most = 0;            ///< a roof above that is refused; 0: it is no roof

    /// Whole numbers are not negative where nothing else is said.
    std::optional<int> least = {}, above = {};
    bool not_empty = false;
    std::span<const std::string_view> words = {};  ///< all that a text may be

    bool null_if_not_finite = false;  ///< elsewhere such a number is an error
    const Axis* axis = nullptr;

    /// Whether a file of that version may be without it.
    bool may_lack(int version) const {
        return (since != 0 ? since : optional) > version || (optional != 0 && version >= optional);
    }
};

/// A member and its name in JSON.
struct Field {
    template <class Struct, class Member>
    Field(std::string_view called, Member Struct::*member, const Rule& with, std::string_view what = {});
    template <class Struct, class Member>
    Field(std::string_view called, Member Struct::*member, std::string_view what = {})
        : Field(called, member, Rule{}, what) {}

    std::string_view name, text;  ///< `text`: what it is, with its unit where the name does not end in it
    Rule rule;
    std::size_t offset;  ///< where the member lies in its struct
    Json (*write)(const void* member, const Path& path, const Rule& rule);
    void (*read)(void* member, const Json& json, const Path& path, const Rule& rule);
    Json (*describe)(const Rule& rule, Json& types);
};

/// A struct that is an object in JSON.
struct Object {
    template <class... Parts>
    Object(std::string_view type, std::string_view what, const Parts&... parts) : name(type), text(what) {
        (add(parts), ...);
    }
    void add(const Field& field) { list.push_back(field); }
    void add(const std::vector<Field>& fields) { list.insert(list.end(), fields.begin(), fields.end()); }

    std::string_view name, text;
    std::vector<Field> list;  ///< in the order in which they are written
};

/// The table of a struct.
template <class Struct>
extern const Object object;
/// The names of an enumeration's values, in their order.
template <class Enum>
extern const std::span<const std::string_view> names;

/// The axes from `first` to `last`, a field each.
template <class Struct>
std::vector<Field> axes_between(std::string_view first, std::string_view last, AxisValues Struct::*member) {
    std::vector<Field> list;
    for (const Axis& axis : axes()) {
        if (axis.name != first && list.empty()) continue;
        // Until version 4 each point had all axes of its time.
        const Rule rule{.since = axis.since, .optional = axis.needed ? 0 : std::max(axis.since, 5), .axis = &axis};
        list.emplace_back(axis.name, member, rule, axis.what);
        if (axis.name == last) break;
    }
    return list;
}

Json write_object(const Object& object, const void* value, const Path& path);
Json write_number(double value, const Path& path, const Rule& rule);
Json write_quantity(const Object& object, const Quantity& quantity, const Path& path);

void read_object(const Object& object, void* value, const Json& json, const Path& path);
double read_number(const Json& json, const Path& path, const Rule& rule);
/// A negative one as its two's complement.
std::uint64_t read_integer(const Json& json, const Path& path, std::int64_t least, std::uint64_t most);
/// The place of a text in `words`.
std::size_t read_word(const Json& json, const Path& path, std::span<const std::string_view> words);
std::size_t read_role(const std::string& key, const Path& path);
void read_quantity(const Object& object, Quantity& quantity, const Json& json, const Path& path, const Rule& rule);
void read_axis(AxisValues& values, const Json& json, const Path& path, const Axis& axis);

/// A reference to the object's schema, which is put among `types`.
Json describe_object(const Object& object, Json& types);
Json number_schema(const Rule& rule, std::string_view type);
/// One of `words`; any text where there are none.
Json words_schema(std::span<const std::string_view> words);
Json or_null(Json schema);

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... Args, template <class...> class Template>
inline constexpr bool is_a<Template<Args...>, Template> = true;
template <class T, std::size_t size>
inline constexpr bool is_array = false;
template <class T, std::size_t size>
inline constexpr bool is_array<std::array<T, size>, size> = true;
static_assert(role_count != 3, "an array of 3 would be by role");

template <class T>
Json write(const T& value, const Path& path, const Rule& rule) {
    if constexpr (is_a<T, std::optional>) {
        return value ? write(*value, path, rule) : Json(nullptr);
    } else if constexpr (is_a<T, std::vector> || is_array<T, 3>) {
        Json array = Json::array();
        for (std::size_t i = 0; i < value.size(); ++i) array.push_back(write(value[i], path.element(i), rule));
        return array;
    } else if constexpr (is_a<T, std::map>) {
        Json json = Json::object();
        for (const auto& [key, element] : value) json[key] = write(element, path.field(key), rule);
        return json;
    } else if constexpr (is_array<T, role_count>) {
        Json json = Json::object();
        for (std::size_t i = 0; i < role_count; ++i)
            if (value[i] != 0) json[std::string(role_names[i])] = write(value[i], path.field(role_names[i]), rule);
        return json;
    } else if constexpr (std::is_same_v<T, AxisValues>) {
        const AxisValue* on_axis = value.find(rule.axis->name);
        return on_axis ? std::visit([&](const auto& plain) { return write(plain, path, rule); }, *on_axis) : Json();
    } else if constexpr (std::is_same_v<T, Quantity>) {
        return write_quantity(object<T>, value, path);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return valid_utf8(value);
    } else if constexpr (std::is_same_v<T, double>) {
        return write_number(value, path, rule);
    } else if constexpr (std::is_enum_v<T>) {
        return names<T>[static_cast<std::size_t>(value)];
    } else if constexpr (std::is_integral_v<T>) {
        return value;
    } else {
        return write_object(object<T>, &value, path);
    }
}

template <class T>
void read(T& value, const Json& json, const Path& path, const Rule& rule) {
    if constexpr (is_a<T, std::optional>) {
        value.reset();
        if (!json.is_null()) read(value.emplace(), json, path, rule);
    } else if constexpr (is_a<T, std::vector> || is_array<T, 3>) {
        constexpr bool is_triple = is_array<T, 3>;
        expect(json.is_array() && (!is_triple || json.size() == 3), path, is_triple ? "an array of 3" : "an array",
               json);
        if constexpr (!is_triple) value.resize(json.size());
        for (std::size_t i = 0; i < value.size(); ++i) read(value[i], json[i], path.element(i), rule);
    } else if constexpr (is_a<T, std::map> || is_array<T, role_count>) {
        expect(json.is_object(), path, "an object", json);
        for (const auto& [key, element] : json.items())
            if constexpr (is_a<T, std::map>)
                read(value[key], element, path.field(key), rule);
            else
                read(value[read_role(key, path)], element, path.field(key), rule);
    } else if constexpr (std::is_same_v<T, AxisValues>) {
        read_axis(value, json, path, *rule.axis);
    } else if constexpr (std::is_same_v<T, Quantity>) {
        read_quantity(object<T>, value, json, path, rule);
    } else if constexpr (std::is_same_v<T, std::string>) {
        expect(json.is_string(), path, "a string", json);
        value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, bool>) {
        expect(json.is_boolean(), path, "true or false", json);
        value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
        value = read_number(json, path, rule);
    } else if constexpr (std::is_enum_v<T>) {
        value = static_cast<T>(read_word(json, path, names<T>));
    } else if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        value = static_cast<T>(read_integer(json, path, rule.least.value_or(0), Limits::max()));
    } else {
        read_object(object<T>, &value, json, path);
    }
}

/// The JSON Schema of a type's values.
template <class T>
Json describe(const Rule& rule, Json& types) {
    if constexpr (is_a<T, std::optional>) {
        Json schema = describe<typename T::value_type>(rule, types);
        return rule.optional != 0 ? schema : or_null(std::move(schema));
    } else if constexpr (is_a<T, std::vector> || is_array<T, 3>) {
        Json schema{{"type", "array"}, {"items", describe<typename T::value_type>(rule, types)}};
        if (is_array<T, 3> || rule.not_empty) schema["minItems"] = is_array<T, 3> ? 3 : 1;
        if (is_array<T, 3>) schema["maxItems"] = 3;
        return schema;
    } else if constexpr (is_a<T, std::map>) {
        return {{"type", "object"}, {"additionalProperties", describe<typename T::mapped_type>(rule, types)}};
    } else if constexpr (is_array<T, role_count>) {
        Json bytes;
        for (const std::string_view role : role_names)
            bytes[std::string(role)] = describe<typename T::value_type>(rule, types);
        return {{"type", "object"}, {"additionalProperties", false}, {"properties", bytes}};
    } else if constexpr (std::is_same_v<T, AxisValues>) {
        const bool is_count = rule.axis->kind == AxisKind::count;
        return is_count ? number_schema({.least = rule.axis->least}, "integer") : words_schema(rule.axis->words);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return words_schema(rule.words);
    } else if constexpr (std::is_enum_v<T>) {
        return words_schema(names<T>);
    } else if constexpr (std::is_arithmetic_v<T>) {
        return number_schema(rule, std::is_same_v<T, bool> ? "boolean" : std::is_integral_v<T> ? "integer" : "number");
    } else {
        return describe_object(object<T>, types);
    }
}

template <class Struct, class Member>
Field::Field(std::string_view called, Member Struct::*member, const Rule& with, std::string_view what)
    : name(called), text(what), rule(with), describe(fields::describe<Member>) {
    static const Struct probe{};
    offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&(probe.*member)) -
                                      reinterpret_cast<const char*>(&probe));
    write = [](const void* value, const Path& path, const Rule& its_rule) {
        return fields::write(*static_cast<const Member*>(value), path, its_rule);
    };
    read = [](void* value, const Json& json, const Path& path, const Rule& its_rule) {
        fields::read(*static_cast<Member*>(value), json, path, its_rule);
    };
}

}  // namespace kbench::fields
