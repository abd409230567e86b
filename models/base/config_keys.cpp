// Reads and checks the keys of a config.json. nlohmann/json stays in this file: no header names it.
#include "models/base/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "kbench/error.h"
#include "models/base/json_text.h"
#include "models/base/nearest.h"
#include "models/base/sizes.h"

namespace kbench {
namespace {

using Json = nlohmann::json;

std::string cut(std::string text, std::size_t longest = 60) {
    return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

/// A value as it stands in the file, cut to fit in a line.
std::string shown_value(const Json& value) { return cut(value.dump(-1, ' ', true)); }

/// A key from the file, without characters that could control a terminal.
std::string shown_key(const std::string& key) {
    const std::string quoted = Json(key).dump(-1, ' ', true);
    return cut(quoted.substr(1, quoted.size() - 2));
}

/// Calls `each` with every word of `names` until it returns true; returns whether it did.
template <class Each>
bool any_name(std::string_view names, const Each& each) {
    while (!names.empty()) {
        const std::size_t end = std::min(names.find(' '), names.size());
        if (end > 0 && each(names.substr(0, end))) return true;
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    return false;
}

std::string_view leaf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// The row of `rows` that lists `name`, or null.
template <class Row>
const Row* row_of(std::span<const Row> rows, std::string_view name) {
    for (const Row& row : rows)
        if (any_name(row.names, [&](std::string_view one) { return one == name; })) return &row;
    return nullptr;
}

/// Parses and refuses repeated keys: Python, which wrote the file, keeps the last one, but a reader sees the first.
Json parse_once_each(const std::string& text, const std::function<void(const std::string&)>& refuse) {
    std::vector<std::set<std::string>> open;
    return Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) open.emplace_back();
        if (event == Json::parse_event_t::object_end) open.pop_back();
        if (event == Json::parse_event_t::key)
            if (const auto& key = parsed.get_ref<const std::string&>(); !open.back().insert(key).second) refuse(key);
        return true;
    });
}

/// A hint for texts that are not JSON but resemble what people often have instead.
std::string why_not_json(const std::string& text, const std::string& path, const std::string& error) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "is empty; a config.json is an object of keys";
    if (path.ends_with(".yaml") || path.ends_with(".yml")) return "is YAML; save its keys as JSON";
    if (text.starts_with("version https://git-lfs"))
        return "is a Git LFS pointer, not the file; fetch it with git lfs pull";
    if (const std::size_t first = text.find_first_not_of(" \t\r\n"); text[first] == '<')
        return "is a web page or XML, not the file itself";
    if (Json::accept(text, true)) return "has comments, which JSON has not; take them out";
    return fmt::format("not JSON: {}", error);
}

/// Whether the text has two or four bytes a character (UTF-16 or UTF-32), as some Windows editors save it.
bool is_wide(const std::string& text) {
    return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
           std::string_view(text).substr(0, 4).find('\0') != std::string_view::npos;
}

}  // namespace

struct ConfigKeys::Document {
    Json json;
    const FamilyKeys* family = nullptr;
    std::vector<std::string> ignored, notes;
    std::vector<ReadKey> read;

    /// A value that was found, and its key's name in the file.
    struct Found {
        const Json* value = nullptr;
        std::string_view name = {};
        explicit operator bool() const { return value != nullptr && !value->is_null(); }
    };

    /// The value at a path of keys. A single key named by the whole path also counts, as in flattened files.
    const Json* at(std::string_view path) const {
        if (const auto whole = json.find(std::string(path)); whole != json.end()) return &*whole;
        const Json* value = &json;
        while (!path.empty()) {
            if (!value->is_object()) return nullptr;
            const std::size_t end = std::min(path.find('.'), path.size());
            const auto found = value->find(std::string(path.substr(0, end)));
            if (found == value->end()) return nullptr;
            value = &*found;
            path.remove_prefix(std::min(end + 1, path.size()));
        }
        return value;
    }

    /// Looks for the key under its own name, then under its other names.
    Found find(std::string_view key) const {
        Found first{at(key), key};
        if (first || family == nullptr) return first;
        for (const UnderstoodKeys& row : family->understood) {
            if (row.same_as != key) continue;
            any_name(row.names, [&](std::string_view name) {
                const Found other{at(name), name};
                if (other) first = other;
                return static_cast<bool>(other);
            });
            if (first) break;
        }
        return first;
    }

    /// Notes that `key` was read.
    void took(std::string_view key, const Found& found, const std::string& value) {
        const auto same = std::ranges::find(read, key, &ReadKey::key);
        ReadKey one{std::string(key), cut(value), found ? std::string(found.name) : std::string()};
        if (same != read.end())
            *same = std::move(one);
        else
            read.push_back(std::move(one));
    }

    [[noreturn]] static void wrong(const ConfigKeys& keys, std::string_view key, const Json& value,
                                   const std::string& right) {
        keys.fail(fmt::format("key '{}' is {}; it must be {}", key, shown_value(value), right));
    }
    /// The bound keeps a product of three sizes exact in a double, and a product of two within int64.
    static std::int64_t integer(const ConfigKeys& keys, std::string_view key, const Json& value) {
        constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
        const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                          value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
        if (!fits) wrong(keys, key, value, fmt::format("an integer from 1 to {}", largest));
        return value.get<std::int64_t>();
    }

    void refuse_two_values(const ConfigKeys& keys) const {
        for (const UnderstoodKeys& row : family->understood) {
            if (row.same_as.empty()) continue;
            const Found first = find(row.same_as);
            any_name(row.names, [&](std::string_view name) {
                const Found other{at(name), name};
                if (first && other && *first.value != *other.value)
                    keys.fail(
                        fmt::format("key '{}' is {}, but '{}', which means the same, is {}; leave one of them out",
                                    first.name, shown_value(*first.value), name, shown_value(*other.value)));
                return false;
            });
        }
    }

    bool is_off(const RefusedKeys& row, const Json& value) const {
        if (value.is_null()) return true;
        const Json off = row.off.empty() ? Json::array() : Json::parse(row.off);
        if (std::ranges::find(off, value) != off.end()) return true;
        // {"0": []} is how transformers writes that no layer has any.
        const auto is_empty = [](const Json& one) { return one.is_array() && one.empty(); };
        if (value.is_object() && std::ranges::find(off, Json::object()) != off.end() &&
            std::all_of(value.begin(), value.end(), is_empty))
            return true;
        if (!row.equals.empty())
            if (const Found other = find(row.equals); other && *other.value == value) return true;
        if (row.unless.empty()) return false;
        const Found other = find(row.unless);
        return other && *other.value == Json(true);
    }

    void refuse(const ConfigKeys& keys, const RefusedKeys& row, std::string_view name, const Json& value) const {
        if (is_off(row, value)) return;
        std::string may_be = row.off.empty() || row.off == "[]" ? "" : fmt::format("; it may be one of {}", row.off);
        if (!row.equals.empty()) may_be += fmt::format("; it may be the same as '{}'", row.equals);
        keys.fail(
            fmt::format("key '{}' is {}: {}{}", shown_key(std::string(name)), shown_value(value), row.why, may_be));
    }

    /// Whether the keys inside the object at `path` are known by names of their own.
    bool is_section(const std::string& path) const {
        return std::ranges::any_of(family->understood, [&](const UnderstoodKeys& row) {
            return any_name(row.names, [&](std::string_view name) {
                return name.size() > path.size() && name.starts_with(path) && name[path.size()] == '.';
            });
        });
    }

    /// Throws where `value`, which nobody reads, contains a key that is understood elsewhere.
    void refuse_hidden(const ConfigKeys& keys, const std::string& path, const Json& value) const {
        if (value.is_array())
            for (const Json& one : value) refuse_hidden(keys, path, one);
        if (!value.is_object()) return;
        for (const auto& [key, one] : value.items()) {
            if (row_of(family->understood, key) != nullptr)
                keys.fail(fmt::format("key '{}' stands in '{}', where kbench does not read it; write it at the top",
                                      shown_key(key), shown_key(path)));
            refuse_hidden(keys, path + "." + key, one);
        }
    }

    void sort_out(const ConfigKeys& keys, const Json& object, const std::string& within) {
        for (const auto& [key, value] : object.items()) {
            const std::string path = within.empty() ? key : within + "." + key;
            if (row_of(family->understood, path) != nullptr) continue;
            if (value.is_object() && is_section(path)) {
                sort_out(keys, value, path);
                continue;
            }
            const std::string_view name = leaf(path);
            if (const RefusedKeys* row = row_of(family->refused, name))
                refuse(keys, *row, path, value);
            else if (row_of(family->harmless, name) != nullptr || value.is_null())
                continue;
            else {
                if (name != path && row_of(family->understood, name) != nullptr)
                    keys.fail(fmt::format("key '{}' is not read there; write '{}' at the top", shown_key(path), name));
                refuse_hidden(keys, path, value);
                ignored.push_back(path);
            }
        }
    }
};

ConfigKeys::ConfigKeys(const std::string& text, std::string path)
    : path_(std::move(path)), document_(std::make_unique<Document>()) {
    check_json_text(text, path_);
    if (is_wide(text)) fail("is UTF-16 or UTF-32; save it as UTF-8");
    try {
        document_->json = parse_once_each(
            text, [&](const std::string& key) { fail(fmt::format("key '{}' stands twice", shown_key(key))); });
    } catch (const Json::exception& error) {
        fail(why_not_json(text, path_, parser_message(error)));
    }
    if (!document_->json.is_object())
        fail(fmt::format("holds {}; a config.json is an object of keys", shown_value(document_->json)));
}

ConfigKeys::ConfigKeys(const std::string& text, std::string path, const FamilyKeys& family)
    : ConfigKeys(text, std::move(path)) {
    document_->family = &family;
    document_->refuse_two_values(*this);
    document_->sort_out(*this, document_->json, "");
}

ConfigKeys::~ConfigKeys() = default;

void ConfigKeys::fail(const std::string& reason) const { throw UsageError(fmt::format("{}: {}", path_, reason)); }

std::string ConfigKeys::shown(const std::string& text) { return shown_key(text); }

bool ConfigKeys::has(std::string_view key) const { return static_cast<bool>(document_->find(key)); }

bool ConfigKeys::is_null(std::string_view key) const {
    const Document::Found found = document_->find(key);
    return found.value != nullptr && found.value->is_null();
}

std::int64_t ConfigKeys::required_integer(std::string_view key, std::string_view needed) const {
    if (!has(key)) fail(fmt::format("key '{}' is missing; {}", key, needed));
    return integer_or(key, 0);
}

std::int64_t ConfigKeys::integer_or(std::string_view key, std::int64_t otherwise) const {
    const Document::Found found = document_->find(key);
    const std::int64_t value = found ? Document::integer(*this, found.name, *found.value) : otherwise;
    document_->took(key, found, fmt::format("{}", value));
    return value;
}

std::int64_t ConfigKeys::count_or(std::string_view key, std::int64_t otherwise) const {
    const Document::Found found = document_->find(key);
    if (!found || !found.value->is_array()) return integer_or(key, otherwise);
    std::set<std::string> listed;
    for (const Json& one : *found.value)
        if (!one.is_string() || !listed.insert(one.get<std::string>()).second)
            Document::wrong(*this, found.name, *found.value, "a number, or a list of texts of which no two are alike");
    if (listed.empty()) Document::wrong(*this, found.name, *found.value, "a number, or a list of at least one text");
    document_->took(key, found, fmt::format("{}", listed.size()));
    return static_cast<std::int64_t>(listed.size());
}

void ConfigKeys::require_few_layers(std::string_view key, std::int64_t layers) const {
    if (layers > most_layers)
        fail(fmt::format("key '{}' asks for {} layers; at most {} can be planned and verified",
                         document_->find(key).name, layers, most_layers));
}

std::vector<std::int64_t> ConfigKeys::required_integers(std::string_view key, std::size_t least,
                                                        std::string_view needed) const {
    const Document::Found found = document_->find(key);
    if (!found) fail(fmt::format("key '{}' is missing; {}", key, needed));
    if (!found.value->is_array() || found.value->size() < least)
        Document::wrong(*this, key, *found.value, fmt::format("a list of at least {} integers", least));
    std::vector<std::int64_t> numbers;
    for (const Json& element : *found.value) numbers.push_back(Document::integer(*this, key, element));
    document_->took(key, found, found.value->dump());
    return numbers;
}

double ConfigKeys::number_or(std::string_view key, double otherwise) const {
    const Document::Found found = document_->find(key);
    if (found &&
        (!found.value->is_number() || !std::isfinite(found.value->get<double>()) || found.value->get<double>() <= 0))
        Document::wrong(*this, found.name, *found.value, "a number above 0");
    const double value = found ? found.value->get<double>() : otherwise;
    document_->took(key, found, fmt::format("{}", value));
    return value;
}

bool ConfigKeys::flag_or(std::string_view key, bool otherwise) const {
    const Document::Found found = document_->find(key);
    // Null is an error here, not the default: Python takes it for false.
    if (found.value != nullptr && !found.value->is_boolean())
        Document::wrong(*this, found.name, *found.value, "true or false");
    const bool value = found ? found.value->get<bool>() : otherwise;
    document_->took(key, found, fmt::format("{}", value));
    return value;
}

std::string ConfigKeys::text_or(std::string_view key, const std::string& otherwise) const {
    const Document::Found found = document_->find(key);
    if (found && !found.value->is_string()) Document::wrong(*this, found.name, *found.value, "a string");
    const std::string value = found ? found.value->get<std::string>() : otherwise;
    document_->took(key, found, shown_key(value));
    return value;
}

std::vector<std::string> ConfigKeys::texts(std::string_view key) const {
    const Document::Found found = document_->find(key);
    std::vector<std::string> texts;
    if (!found) return texts;
    const auto is_text = [](const Json& one) { return one.is_string(); };
    if (!found.value->is_array() || !std::ranges::all_of(*found.value, is_text))
        Document::wrong(*this, found.name, *found.value, "a list of strings");
    for (const Json& one : *found.value) texts.push_back(one.get<std::string>());
    return texts;
}

const std::vector<ReadKey>& ConfigKeys::read() const { return document_->read; }

std::string ConfigKeys::ignored() const {
    constexpr std::size_t most = 12, near = 2;
    const std::vector<std::string>& all = document_->ignored;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
        text += (i > 0 ? ", " : "") + shown_key(all[i]);
        for (const ReadKey& key : document_->read)
            if (key.from.empty() && all[i].size() <= 64 && edit_distance(all[i], key.key) <= near)
                text += fmt::format(" (is '{}' meant?)", key.key);
    }
    if (all.size() > most) text += fmt::format(" and {} more", all.size() - most);
    return text;
}

std::vector<std::string> ConfigKeys::notes() const {
    std::vector<std::string> notes = document_->notes;
    if (!document_->ignored.empty())
        notes.push_back(fmt::format("{}: ignored, since kbench does not know them: {}", path_, ignored()));
    return notes;
}

void ConfigKeys::note(const std::string& text) const { document_->notes.push_back(fmt::format("{}: {}", path_, text)); }

}  // namespace kbench
