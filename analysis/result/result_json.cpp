// result.json from and to a Result: how each type of field is written and read. Which fields there are:
// result_fields.h.
#include "analysis/result/result_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "analysis/result/gzip.h"
#include "analysis/result/result_fields.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

/// Where a value stands in the document. A chain of stack frames, so that no text is built unless an error needs it.
struct Path {
    const Path* parent = nullptr;
    std::string_view key;  ///< empty: an array's element
    std::size_t index = 0;

    Path field(std::string_view name) const { return {this, name, 0}; }
    Path element(std::size_t i) const { return {this, {}, i}; }
    std::string text() const {
        if (!parent) return {};
        const std::string before = parent->text();
        if (key.empty()) return fmt::format("{}[{}]", before, index);
        return before.empty() ? std::string(key) : fmt::format("{}.{}", before, key);
    }
};

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... Args, template <class...> class Template>
inline constexpr bool is_a<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_by_role = false;
template <class T>
inline constexpr bool is_by_role<std::array<T, role_count>> = true;
template <class T>
inline constexpr bool is_triple = false;
template <class T>
inline constexpr bool is_triple<std::array<T, 3>> = true;
static_assert(role_count != 3, "an array of 3 would be by role");

Json write_string(const std::string& text) { return valid_utf8(text); }

Json write_quantity(const Quantity& quantity) {
    const bool finite = quantity.value && std::isfinite(*quantity.value);
    const bool lost = quantity.value && !finite;
    return {{"value", finite ? Json(*quantity.value) : Json(nullptr)},
            {"origin", name(finite ? quantity.origin : Origin::unavailable)},
            {"reason", lost ? Json("the value is not finite") : write_string(quantity.reason)}};
}

/// The axes of a struct whose fields say that it has some; `field` makes it a question of the field alone.
template <class Struct>
auto& axes_of(const AxisFields&, Struct& value) {
    return value.axes;
}

/// Hands out the axes of a point list by list, see AxisFields.
class AxisLists {
  public:
    std::span<const Axis> next(const AxisFields& list) {
        const std::size_t first = at_;
        while (at_ < axes().size() && axes()[at_++].name != list.last) {
        }
        return axes().subspan(first, at_ - first);
    }

  private:
    std::size_t at_ = 0;
};

template <class T>
Json write(const T& value, const Path& path, bool null_if_not_finite = false) {
    if constexpr (has_fields<T>) {
        Json object = Json::object();
        AxisLists lists;
        const auto write_field = [&](const auto& field) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, AxisFields>) {
                for (const Axis& axis : lists.next(field))
                    if (const AxisValue* on_axis = axes_of(field, value).find(axis.name))
                        object[std::string(axis.name)] = std::visit(
                            [&](const auto& plain) { return write(plain, path.field(axis.name)); }, *on_axis);
            } else {
                Json written = write(value.*field.member, path.field(field.name), field.null_if_not_finite);
                if (field.optional_since == 0 || !written.empty()) object[std::string(field.name)] = std::move(written);
            }
        };
        std::apply([&](const auto&... field) { (write_field(field), ...); }, fields<T>);
        return object;
    } else if constexpr (is_a<T, std::optional>) {
        return value ? write(*value, path) : Json(nullptr);
    } else if constexpr (is_a<T, std::vector> || is_triple<T>) {
        Json array = Json::array();
        for (std::size_t i = 0; i < value.size(); ++i) array.push_back(write(value[i], path.element(i)));
        return array;
    } else if constexpr (is_a<T, std::map>) {
        Json object = Json::object();
        for (const auto& [key, element] : value) object[key] = write(element, path.field(key));
        return object;
    } else if constexpr (is_by_role<T>) {
        Json object = Json::object();
        for (std::size_t role = 0; role < role_count; ++role)
            if (value[role] != 0)
                object[std::string(role_names[role])] = write(value[role], path.field(role_names[role]));
        return object;
    } else if constexpr (std::is_same_v<T, Quantity>) {
        return write_quantity(value);
    } else if constexpr (std::is_enum_v<T>) {
        return name(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return write_string(value);
    } else if constexpr (std::is_same_v<T, double>) {
        if (std::isfinite(value)) return value;
        if (null_if_not_finite) return nullptr;
        throw MeasurementError(fmt::format("{} is {}; result.json holds finite numbers only", path.text(), value));
    } else {
        static_assert(std::is_integral_v<T>);
        return value;
    }
}

std::string describe(const Json& json) {
    if (json.is_string()) return "a string";
    if (json.is_object()) return "an object";
    if (json.is_array()) return "an array";
    return json.dump();
}

class Reader {
  public:
    /// `version`: of the file's schema.
    Reader(const std::string& file, int version) : file_(file), version_(version) {}

    template <class T>
    T read(const Json& json, const Path& path, bool null_if_not_finite = false) const {
        if constexpr (has_fields<T>) {
            return read_struct<T>(json, path);
        } else if constexpr (is_a<T, std::optional>) {
            if (json.is_null()) return std::nullopt;
            return read<typename T::value_type>(json, path);
        } else if constexpr (is_a<T, std::vector>) {
            expect(json.is_array(), path, "an array", json);
            T values;
            values.reserve(json.size());
            for (const Json& element : json)
                values.push_back(read<typename T::value_type>(element, path.element(values.size())));
            return values;
        } else if constexpr (is_triple<T>) {
            expect(json.is_array() && json.size() == 3, path, "an array of 3", json);
            T values{};
            for (std::size_t i = 0; i < 3; ++i) values[i] = read<typename T::value_type>(json[i], path.element(i));
            return values;
        } else if constexpr (is_a<T, std::map>) {
            expect(json.is_object(), path, "an object", json);
            T values;
            for (const auto& [key, element] : json.items())
                values[key] = read<typename T::mapped_type>(element, path.field(key));
            return values;
        } else if constexpr (is_by_role<T>) {
            return read_by_role<typename T::value_type>(json, path);
        } else if constexpr (std::is_same_v<T, Quantity>) {
            return read_quantity(json, path);
        } else if constexpr (std::is_enum_v<T>) {
            return read_enum<T>(json, path);
        } else if constexpr (std::is_same_v<T, std::string>) {
            expect(json.is_string(), path, "a string", json);
            return json.get<std::string>();
        } else if constexpr (std::is_same_v<T, bool>) {
            expect(json.is_boolean(), path, "true or false", json);
            return json.get<bool>();
        } else if constexpr (std::is_same_v<T, double>) {
            if (null_if_not_finite && json.is_null()) return std::numeric_limits<double>::quiet_NaN();
            expect(json.is_number(), path, null_if_not_finite ? "a number or null" : "a number", json);
            return json.get<double>();
        } else {
            return read_integer<T>(json, path);
        }
    }

  private:
    [[noreturn]] void fail(const Path& path, std::string_view expected, std::string_view found) const {
        const std::string where = path.text();
        throw UsageError(
            fmt::format("{}: {}expected {}, found {}", file_, where.empty() ? "" : where + ": ", expected, found));
    }

    void expect(bool holds, const Path& path, std::string_view expected, const Json& json) const {
        if (!holds) fail(path, expected, describe(json));
    }

    template <class T>
    T read_struct(const Json& json, const Path& path) const {
        expect(json.is_object(), path, "an object", json);
        T value;
        std::size_t known = 0;
        AxisLists lists;
        const auto read_field = [&](const auto& field) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, AxisFields>) {
                for (const Axis& axis : lists.next(field)) known += read_axis(json, path, axis, axes_of(field, value));
            } else {
                const auto found = json.find(field.name);
                const bool is_optional = field.optional_since != 0 && version_ >= field.optional_since;
                if (found == json.end() && (is_optional || field.since > version_)) return;
                if (found == json.end()) fail(path.field(field.name), "a value", "nothing");
                auto& member = value.*field.member;
                using Member = std::remove_reference_t<decltype(member)>;
                if (field.optional_since != 0 && found->is_null()) fail(path.field(field.name), "a value", "null");
                member = read<Member>(*found, path.field(field.name), field.null_if_not_finite);
                ++known;
            }
        };
        std::apply([&](const auto&... field) { (read_field(field), ...); }, fields<T>);
        if (json.size() != known) refuse_unknown_fields<T>(json, path);
        if constexpr (std::is_same_v<T, Ceiling>)
            if (value.value.value && !(*value.value.value > 0 && *value.value.value <= highest_roof))
                fail(path.field("value"), fmt::format("a roof above 0, at most {:g}", highest_roof),
                     fmt::format("{}", *value.value.value));
        return value;
    }

    /// From this version on a point has only the axes that mean something for it.
    static constexpr int axes_are_optional_since = 5;

    /// Whether it is there.
    bool read_axis(const Json& json, const Path& path, const Axis& axis, AxisValues& values) const {
        const auto found = json.find(axis.name);
        const Path at = path.field(axis.name);
        if (found == json.end()) {
            // No model of an older file has an axis that came with a newer model.
            if (version_ < axis.since && axis.usual && !axis.of_model) values.set(axis.name, *axis.usual);
            if (axis.needed || (version_ >= axis.since && version_ < axes_are_optional_since))
                fail(at, "a value", "nothing");
            return false;
        }
        switch (axis.kind) {
            case AxisKind::count: values.set(axis.name, read_count(*found, at)); break;
            case AxisKind::word: values.set(axis.name, read_word(*found, at, axis.words)); break;
            case AxisKind::name: values.set(axis.name, read<std::string>(*found, at)); break;
        }
        return true;
    }

    std::int64_t read_count(const Json& json, const Path& path) const {
        const auto count = read_integer<std::int64_t>(json, path);
        if (count < 1) fail(path, "a whole number from 1", json.dump());
        return count;
    }

    std::string read_word(const Json& json, const Path& path, std::span<const std::string_view> words) const {
        if (json.is_string() && std::ranges::find(words, json.get_ref<const std::string&>()) != words.end())
            return json.get<std::string>();
        fail(path, fmt::format("one of {}", fmt::join(words, ", ")), json.is_string() ? json.dump() : describe(json));
    }

    static bool is_named(const AxisFields&, const std::string& key) {
        return std::ranges::find(axes(), key, &Axis::name) != axes().end();
    }
    template <class Struct, class Member>
    static bool is_named(const Field<Struct, Member>& field, const std::string& key) {
        return field.name == key;
    }

    template <class T>
    void refuse_unknown_fields(const Json& json, const Path& path) const {
        for (const auto& item : json.items()) {
            const std::string& key = item.key();
            if (!std::apply([&](const auto&... field) { return (is_named(field, key) || ...); }, fields<T>))
                throw UsageError(
                    fmt::format("{}: {}: not a field of {}", file_, path.field(key).text(), result_schema));
        }
    }

    template <class T>
    std::array<T, role_count> read_by_role(const Json& json, const Path& path) const {
        expect(json.is_object(), path, "an object", json);
        std::array<T, role_count> values{};
        for (const auto& [key, element] : json.items()) {
            const auto role = std::find(std::begin(role_names), std::end(role_names), key);
            if (role == std::end(role_names))
                fail(path, fmt::format("only the roles {}", fmt::join(role_names, ", ")), fmt::format("\"{}\"", key));
            values[static_cast<std::size_t>(role - role_names)] = read<T>(element, path.field(key));
        }
        return values;
    }

    Quantity read_quantity(const Json& json, const Path& path) const {
        expect(json.is_object(), path, "an object", json);
        for (const std::string_view part : {"value", "origin", "reason"})
            if (!json.contains(part)) fail(path.field(part), "a value", "nothing");
        if (json.size() != 3) fail(path, "only value, origin and reason", fmt::format("{} fields", json.size()));

        Quantity quantity;
        quantity.value = read<std::optional<double>>(json["value"], path.field("value"));
        quantity.origin = read<Origin>(json["origin"], path.field("origin"));
        quantity.reason = read<std::string>(json["reason"], path.field("reason"));
        if (quantity.value.has_value() == (quantity.origin == Origin::unavailable))
            fail(path.field("value"), quantity.value ? "null for what is unavailable" : "a number",
                 describe(json["value"]));
        return quantity;
    }

    template <class Enum>
    Enum read_enum(const Json& json, const Path& path) const {
        std::string names;
        for (const Enum value : values_of<Enum>) {
            if (json.is_string() && name(value) == json.get_ref<const std::string&>()) return value;
            names += fmt::format("{}{}", names.empty() ? "" : ", ", name(value));
        }
        fail(path, "one of " + names, json.is_string() ? json.dump() : describe(json));
    }

    template <class T>
    T read_integer(const Json& json, const Path& path) const {
        expect(json.is_number_integer(), path, "an integer", json);
        const bool in_range = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                        : std::in_range<T>(json.get<std::int64_t>());
        if (!in_range)
            fail(path,
                 fmt::format("an integer from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()),
                 json.dump());
        return json.get<T>();
    }

    const std::string& file_;
    int version_;
};

/// The document's JSON; the parser's own message without its class prefix.
Json parse_json(const std::string& text, const std::string& path) {
    check_json_text(text, path, most_ordered_members);
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        const std::string_view what = error.what();
        throw UsageError(fmt::format("{}: not JSON: {}", path, what.substr(what.find("] ") + 2)));
    }
}

constexpr std::string_view family = result_schema.substr(0, result_schema.find('/') + 1);

/// The number after the family's name, 0 for another family.
int version_of(std::string_view schema) {
    int number = 0;
    if (schema.starts_with(family))
        std::from_chars(schema.data() + family.size(), schema.data() + schema.size(), number);
    return number;
}

/// Counters that were once named for what they are not.
constexpr std::pair<std::string_view, std::string_view> renamed_counters[] = {
    {"tensor_active", "tensor_pipe_active"},  // moves of constants run on that pipe, too
    {"tensor_hmma_inst", "tensor_pipe_inst"},
    {"sm_active", "smsp_active"},  // a column of that name is of the timing run's time
};
void rename_counters(Result& result) {
    for (Point& point : result.points)
        for (const auto& [before, after] : renamed_counters) {
            for (CountedMetric& metric : point.counters.metrics)
                if (metric.name == before) metric.name = after;
            for (StepResult& step : point.steps)
                if (auto counted = step.counters.extract(std::string(before)); !counted.empty()) {
                    counted.key() = after;
                    step.counters.insert(std::move(counted));
                }
        }
}

/// The version of the document's schema. Throws unless it is one that this version of kbench reads.
int schema_version(const Json& json, const std::string& path) {
    if (!json.is_object() || !json.contains("schema"))
        throw UsageError(fmt::format("{}: not a kbench result (no \"schema\")", path));
    const Json& found = json["schema"];
    const std::string schema = found.is_string() ? found.get<std::string>() : std::string();
    const int version = version_of(schema);
    if (version > version_of(result_schema))
        throw UsageError(
            fmt::format("{}: schema {} is newer than {}; use a newer kbench", path, schema, result_schema));
    if (version < 1 || schema != fmt::format("{}{}", family, version))
        throw UsageError(fmt::format("{}: not a kbench result (\"schema\" is {}, not \"{}\")", path, describe(found),
                                     result_schema));
    return version;
}

/// Steps are the bulk of a file; one on a line is what a person compares and a diff shows.
constexpr std::size_t longest_line = 1400;

void append_text(const Json& json, const std::string& indent, std::string& text) {
    const bool numbers = json.is_array() && !json.empty() && json.front().is_number();
    const bool nested = json.is_structured() && !json.empty() && !numbers;
    std::string line = nested && indent.size() <= 2 ? "" : json.dump();
    if (!nested || (indent.size() > 2 && line.size() <= longest_line)) {
        text += line;
        return;
    }
    const std::string inner = indent + "  ";
    text += json.is_array() ? "[" : "{";
    std::string_view separator = "\n";
    for (const auto& [key, value] : json.items()) {
        text += separator;
        text += inner;
        if (json.is_object()) text += Json(key).dump() + ": ";
        append_text(value, inner, text);
        separator = ",\n";
    }
    text += "\n" + indent + (json.is_array() ? "]" : "}");
}

/// Before version 6 intervals took all samples as independent: they are computed again where the samples are there.
void mend_intervals(Result& result) {
    const auto mend = [](Timing& timing) {
        if (!timing.samples_ms.empty()) timing.summary_ms = summarise(timing.samples_ms);
    };
    double target = 0.005;  // of versions that did not record it
    if (const auto found = result.options.find("target_relative_ci"); found != result.options.end())
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), target);
    for (Point& point : result.points) {
        for (MarginalCost& marginal : point.marginal) mend(marginal.difference_ms);
        if (!point.end_to_end) continue;
        EndToEnd& times = *point.end_to_end;
        mend(times.latency);
        times.counted_independent = false;
        times.converged = times.converged && times.latency.summary_ms.relative_ci() <= target;
        for (auto* timing : {&times.stream, &times.enqueue, &times.host_to_device, &times.device_to_host})
            if (*timing) mend(**timing);
    }
}

}  // namespace

std::string valid_utf8(const std::string& text) {
    return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json to_json(const Result& result) {
    Json json{{"schema", result_schema}};
    json.update(write(result, Path{}));
    return json;
}

std::string to_text(const Result& result) {
    std::string text;
    append_text(to_json(result), "", text);
    return text + "\n";
}

Result parse_result(const std::string& text, const std::string& path) {
    Json json = is_gzip(text) ? parse_json(gunzip(text, path), path) : parse_json(text, path);
    const int version = schema_version(json, path);
    json.erase("schema");
    Result result = Reader(path, version).read<Result>(json, Path{});
    if (version < 6) mend_intervals(result);
    rename_counters(result);
    return result;
}

Json ceilings_to_json(const CeilingRun& run) { return write(run, Path{}); }

CeilingRun parse_ceilings(const Json& json, const std::string& path) {
    return Reader(path, version_of(result_schema)).read<CeilingRun>(json, Path{});
}

}  // namespace kbench
