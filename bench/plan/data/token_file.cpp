// Reads each form of token files; the first bytes say which it is.
#include "bench/plan/data/token_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/plan/data/other_formats.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little);

/// Appends `bytes`, raw numbers of type Number.
template <class Number>
void append_raw(std::string_view bytes, std::vector<std::int64_t>& values) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
        Number number;
        std::memcpy(&number, bytes.data() + at, sizeof number);
        values.push_back(static_cast<std::int64_t>(number));
    }
}

struct RawType {
    std::string_view name;
    std::size_t bytes;
    void (*append)(std::string_view bytes, std::vector<std::int64_t>& values);
};
constexpr RawType raw_types[] = {
    {"uint8", 1, append_raw<std::uint8_t>},   {"int8", 1, append_raw<std::int8_t>},
    {"uint16", 2, append_raw<std::uint16_t>}, {"int16", 2, append_raw<std::int16_t>},
    {"uint32", 4, append_raw<std::uint32_t>}, {"int32", 4, append_raw<std::int32_t>},
    {"int64", 8, append_raw<std::int64_t>},
};

const RawType* raw_type(std::string_view name) {
    const auto* found = std::ranges::find(raw_types, name, &RawType::name);
    return found == std::end(raw_types) ? nullptr : found;
}

std::string raw_type_names() {
    std::vector<std::string_view> names;
    for (const RawType& type : raw_types) names.push_back(type.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

/// llm.c's token files (dev/data/data_common.py): 256 int32, of which the first are a magic number, a version and the
/// number of tokens; then the tokens.
struct LlmcHeader {
    std::int32_t magic, version;
    std::string_view type;
};
constexpr LlmcHeader llmc_headers[] = {{20240520, 1, "uint16"}, {20240801, 7, "uint32"}};
constexpr std::size_t llmc_header_bytes = 1024;

const LlmcHeader* llmc_header(std::string_view content) {
    std::int32_t first = 0;
    if (content.size() < sizeof first) return nullptr;
    std::memcpy(&first, content.data(), sizeof first);
    const auto* found = std::ranges::find(llmc_headers, first, &LlmcHeader::magic);
    return found == std::end(llmc_headers) ? nullptr : found;
}

/// What is read, and from where.
struct Source {
    const fs::path& path;
    std::string_view content, what;

    UsageError wrong(const std::string& why) const { return UsageError(fmt::format("{}: {}", path.string(), why)); }
};

IntegerArray flat(std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {{count}, std::move(values)};
}

IntegerArray read_raw(const Source& source, std::string_view bytes, const RawType& type) {
    if (bytes.size() % type.bytes != 0)
        throw source.wrong(fmt::format("{} bytes are no whole number of {}", bytes.size(), type.name));
    std::vector<std::int64_t> values;
    values.reserve(bytes.size() / type.bytes);
    type.append(bytes, values);
    return flat(std::move(values));
}

IntegerArray read_llmc(const Source& source, const LlmcHeader& known, std::string_view asked) {
    if (source.content.size() < llmc_header_bytes) throw source.wrong("a token file of llm.c, truncated in its header");
    std::int32_t header[3];
    std::memcpy(header, source.content.data(), sizeof header);
    if (header[1] != known.version)
        throw source.wrong(fmt::format("a token file of llm.c of version {}; {} is known", header[1], known.version));
    if (!asked.empty() && asked != known.type)
        throw source.wrong(fmt::format("a token file of llm.c, which holds {}; leave out :{}", known.type, asked));
    const std::string_view bytes = source.content.substr(llmc_header_bytes);
    IntegerArray array = read_raw(source, bytes, *raw_type(known.type));
    if (array.shape[0] != header[2])
        throw source.wrong(fmt::format("its header says {} tokens, and {} follow it", header[2], array.shape[0]));
    return array;
}

IntegerArray read_text(const Source& source) {
    constexpr std::string_view separators = " \t\r\n\v\f,";
    const std::string_view text = source.content;
    std::vector<std::int64_t> values;
    for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
        const std::string_view word = text.substr(at, end - at);
        std::int64_t value = 0;
        const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
        if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size())
            throw source.wrong(
                fmt::format("{} {} is '{}'; it should be an integer", source.what, values.size(), word.substr(0, 32)));
        values.push_back(value);
        at = text.find_first_not_of(separators, end);
    }
    return flat(std::move(values));
}

/// Lists of integers out of JSON: a list, a list of such, or an object with one of these keys, as tokenizers give it.
class JsonRows {
  public:
    JsonRows(const Source& source) : source_(source) {}

    void add(const json& value) {
        if (value.is_object()) {
            for (const std::string_view key : {"input_ids", "tokens", "token_ids", "ids"})
                if (const auto found = value.find(key); found != value.end()) return add(*found);
            throw source_.wrong(
                "a JSON object without a list of tokens; it should have input_ids, tokens, token_ids or ids");
        }
        if (!value.is_array()) throw source_.wrong(fmt::format("{}; it should be a list", named(value)));
        if (!value.empty() && std::ranges::all_of(value, [](const json& e) { return e.is_array() || e.is_object(); })) {
            for (const json& row : value) add(row);
            return;
        }
        std::int64_t length = 0;
        for (const json& element : value) {
            if (!element.is_number_integer() || (element.is_number_unsigned() && element.get<std::uint64_t>() >> 63))
                throw source_.wrong(
                    fmt::format("{} {} is {}; it should be an integer", source_.what, values_.size(), named(element)));
            values_.push_back(element.get<std::int64_t>());
            ++length;
        }
        lengths_.push_back(length);
    }

    IntegerArray array(RowLengths rows) {
        const auto count = static_cast<std::int64_t>(lengths_.size());
        const auto other = std::ranges::find_if(lengths_, [&](std::int64_t n) { return n != lengths_.front(); });
        if (other == lengths_.end() && count > 1) return {{count, lengths_.front()}, std::move(values_)};
        if (other != lengths_.end() && rows == RowLengths::of_one_length)
            throw source_.wrong(fmt::format("row {} has {} {}s, row 0 has {}; they should be of one length",
                                            other - lengths_.begin(), *other, source_.what, lengths_.front()));
        return flat(std::move(values_));
    }

  private:
    static std::string named(const json& value) {
        if (value.is_structured()) return fmt::format("a JSON {}", value.type_name());
        return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 32);
    }

    const Source& source_;
    std::vector<std::int64_t> values_, lengths_;
};

/// One JSON text, or one a line.
IntegerArray read_json(const Source& source, RowLengths rows) {
    JsonRows read(source);
    const auto parse = [&](std::string_view text) {
        check_json_text(text, source.path.string());
        return json::parse(text.begin(), text.end(), nullptr, false);
    };
    if (const json whole = parse(source.content); !whole.is_discarded()) {
        read.add(whole);
        return read.array(rows);
    }
    std::size_t number = 0;
    for (std::size_t at = 0; at < source.content.size();) {
        const std::size_t end = std::min(source.content.find('\n', at), source.content.size());
        const std::string_view line = source.content.substr(at, end - at);
        ++number;
        if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
            const json value = parse(line);
            if (value.is_discarded()) throw source.wrong(fmt::format("line {} is not JSON", number));
            read.add(value);
        }
        at = end + 1;
    }
    return read.array(rows);
}

/// Letters, digits, white space and what else people type; bytes of UTF-8 too.
bool is_text(std::string_view bytes) {
    return std::ranges::all_of(bytes, [](unsigned char c) { return c >= 0x20 ? c != 0x7f : (c >= '\t' && c <= '\r'); });
}

}  // namespace

TokenFile token_file(const fs::path& name) {
    std::error_code none;
    if (name == "-") return {"/dev/stdin", {}};
    const std::string text = name;
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || fs::exists(name, none)) return {name, {}};
    const fs::path path = text.substr(0, colon) == "-" ? "/dev/stdin" : text.substr(0, colon);
    if (const RawType* const type = raw_type(std::string_view(text).substr(colon + 1))) return {path, type->name};
    if (!path.empty() && fs::exists(path, none))
        throw UsageError(
            fmt::format("{}: '{}' is no type; raw numbers are {}", text, text.substr(colon + 1), raw_type_names()));
    return {name, {}};
}

IntegerArray read_integers(const fs::path& name, std::string_view what, RowLengths rows) {
    const TokenFile file = token_file(name);
    std::string content = read_whole_file(file.path);
    std::string_view view = content;
    Source source{file.path, view, what};
    if (is_npy(view) || (file.type.empty() && file.path.extension() == ".npy")) {
        if (!file.type.empty())
            throw source.wrong(fmt::format("a .npy file, which says its type itself; leave out :{}", file.type));
        return parse_npy_integers(std::move(content), file.path);
    }
    if (const LlmcHeader* const header = llmc_header(view)) return read_llmc(source, *header, file.type);
    if (!file.type.empty()) return read_raw(source, view, *raw_type(file.type));
    if (view.starts_with("\xff\xfe") || view.starts_with("\xfe\xff"))
        throw source.wrong("UTF-16 text; save it as UTF-8");
    if (view.starts_with("\xef\xbb\xbf")) view.remove_prefix(3);  // UTF-8 as Windows marks it
    source.content = view;
    const std::string_view first = view.substr(0, recognised_bytes);
    const std::size_t letter = view.find_first_not_of(" \t\r\n");
    if (letter != std::string_view::npos && (view[letter] == '[' || view[letter] == '{'))
        return read_json(source, rows);
    if (!view.empty())
        if (const std::string other = other_format(first, Wanted::tokens); !other.empty()) throw source.wrong(other);
    if (!is_text(first) || file.path.extension() == ".bin")
        throw source.wrong(
            fmt::format("raw numbers, whose type nothing tells: name it behind a colon, as {}:uint16; it is one of {}",
                        file.path.filename().string(), raw_type_names()));
    return read_text(source);
}

}  // namespace kbench
