// Scans a JSON text for its depth and for the size of its objects, before a parser sees it.
#include "models/base/json_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include <nlohmann/json.hpp>

#include "kbench/error.h"

namespace kbench {

void check_json_text(std::string_view text, const std::string& path, std::size_t most_members) {
    std::array<std::size_t, deepest_json + 1> members{};  // members of the open object at each depth
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
            continue;
        }
        switch (c) {
            case '"': in_string = true; break;
            case '{':
            case '[':
                if (++depth > deepest_json)
                    throw UsageError(fmt::format("{}: nested deeper than {} levels", path, deepest_json));
                members[depth] = 0;
                break;
            case '}':
            case ']':
                if (depth > 0) --depth;
                break;
            case ':':
                if (++members[depth] > most_members)
                    throw UsageError(fmt::format("{}: an object of more than {} members", path, most_members));
                break;
            default: break;
        }
    }
}

std::string parser_message(const std::exception& error) {
    const std::string_view what = error.what();
    const std::size_t prefix = what.starts_with('[') ? what.find("] ") : std::string_view::npos;
    return std::string(prefix == std::string_view::npos ? what : what.substr(prefix + 2));
}

std::string valid_utf8(const std::string& text) {
    using Json = nlohmann::json;
    return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace kbench
