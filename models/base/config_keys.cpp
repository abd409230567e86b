// Reads keys with nlohmann/json, which no header names.
#include "models/base/config_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "kbench/error.h"
#include "models/base/json_text.h"
#include "models/base/sizes.h"

namespace kbench {
namespace {

using Json = nlohmann::json;

/// A value as it stands in the file, cut to what fits in a line.
std::string shown(const Json& value) {
    constexpr std::size_t longest = 60;
    const std::string text = value.dump(-1, ' ', true);
    return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

}  // namespace

struct ConfigKeys::Document {
    Json json;

    const Json* find(const char* key) const {
        const auto found = json.find(key);
        return found == json.end() || found->is_null() ? nullptr : &*found;
    }
    [[noreturn]] static void wrong(const ConfigKeys& keys, const char* key, const Json& value,
                                   const std::string& right) {
        keys.fail(fmt::format("key '{}' is {}; it must be {}", key, shown(value), right));
    }
    /// The bound keeps every product of three sizes within double's exact integers and one of two within int64.
    static std::int64_t integer(const ConfigKeys& keys, const char* key, const Json& value) {
        constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
        const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                          value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
        if (!fits) wrong(keys, key, value, fmt::format("an integer from 1 to {}", largest));
        return value.get<std::int64_t>();
    }
};

ConfigKeys::ConfigKeys(const std::string& text, std::string path)
    : path_(std::move(path)), document_(std::make_unique<Document>()) {
    check_json_text(text, path_);
    try {
        document_->json = Json::parse(text);
    } catch (const Json::exception& error) {
        fail(fmt::format("not JSON: {}", error.what()));
    }
    if (!document_->json.is_object())
        fail(fmt::format("holds {}; a config.json is an object of keys", shown(document_->json)));
}

ConfigKeys::~ConfigKeys() = default;

void ConfigKeys::fail(const std::string& reason) const { throw UsageError(fmt::format("{}: {}", path_, reason)); }

bool ConfigKeys::has(const char* key) const { return document_->find(key) != nullptr; }

bool ConfigKeys::is_null(const char* key) const {
    const auto found = document_->json.find(key);
    return found != document_->json.end() && found->is_null();
}

std::int64_t ConfigKeys::required_integer(const char* key, const char* needed) const {
    const Json* value = document_->find(key);
    if (value == nullptr) fail(fmt::format("key '{}' is missing; {}", key, needed));
    return Document::integer(*this, key, *value);
}

std::int64_t ConfigKeys::integer_or(const char* key, std::int64_t otherwise) const {
    const Json* value = document_->find(key);
    return value != nullptr ? Document::integer(*this, key, *value) : otherwise;
}

void ConfigKeys::require_few_layers(const char* key, std::int64_t layers) const {
    if (layers > most_layers)
        fail(fmt::format("key '{}' asks for {} layers; at most {} can be planned and verified", key, layers,
                         most_layers));
}

std::vector<std::int64_t> ConfigKeys::required_integers(const char* key, std::size_t least, const char* needed) const {
    const Json* value = document_->find(key);
    if (value == nullptr) fail(fmt::format("key '{}' is missing; {}", key, needed));
    if (!value->is_array() || value->size() < least)
        Document::wrong(*this, key, *value, fmt::format("a list of at least {} integers", least));
    std::vector<std::int64_t> numbers;
    for (const Json& element : *value) numbers.push_back(Document::integer(*this, key, element));
    return numbers;
}

double ConfigKeys::number_or(const char* key, double otherwise) const {
    const Json* value = document_->find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0)
        Document::wrong(*this, key, *value, "a number above 0");
    return value->get<double>();
}

bool ConfigKeys::flag_or(const char* key, bool otherwise) const {
    const Json* value = document_->find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) Document::wrong(*this, key, *value, "true or false");
    return value->get<bool>();
}

std::string ConfigKeys::text_or(const char* key, const std::string& otherwise) const {
    const Json* value = document_->find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) Document::wrong(*this, key, *value, "a string");
    return value->get<std::string>();
}

}  // namespace kbench
