// A .npy file: magic, version, header length, a Python dictionary literal padded to a multiple of 64 bytes, then the
// data.
#include "bench/plan/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/plan/data/array_shape.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// How a type is stored in the file.
struct Stored {
    DataType type;
    std::string_view descr;
};

Stored stored_as(DataType type) {
    switch (type) {
        case DataType::fp16: return {DataType::fp16, "<f2"};
        case DataType::bf16:
        case DataType::fp32: return {DataType::fp32, "<f4"};
        case DataType::fp64: return {DataType::fp64, "<f8"};
        case DataType::int32: break;
    }
    return {DataType::int32, "<i4"};
}

std::string header(std::span<const std::int64_t> shape, std::string_view descr) {
    std::string text =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape_text(shape));
    const std::size_t fixed = magic.size() + 4;  // magic, two bytes of version, two of header length
    text.append(63 - (fixed + text.size()) % 64, ' ');
    text += '\n';
    const auto length = static_cast<std::uint16_t>(text.size());
    return std::string(magic) +
           std::string{'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} + text;
}

/// The dictionary of a header.
class Dictionary {
  public:
    explicit Dictionary(std::string_view text) : text_(text) {}

    /// What stands after 'key': without leading blanks, or nothing.
    std::optional<std::string_view> after(std::string_view key) const {
        for (const char quote : {'\'', '"'}) {
            const std::string quoted = quote + std::string(key) + quote;
            std::size_t at = text_.find(quoted);
            if (at == std::string_view::npos) continue;
            at = text_.find_first_not_of(" ", at + quoted.size());
            if (at == std::string_view::npos || text_[at] != ':') continue;
            at = text_.find_first_not_of(" ", at + 1);
            if (at != std::string_view::npos) return text_.substr(at);
        }
        return std::nullopt;
    }

    std::optional<std::string> quoted(std::string_view key) const {
        const auto text = after(key);
        if (!text || (text->front() != '\'' && text->front() != '"')) return std::nullopt;
        const std::size_t end = text->find(text->front(), 1);
        if (end == std::string_view::npos) return std::nullopt;
        return std::string(text->substr(1, end - 1));
    }

    std::optional<bool> boolean(std::string_view key) const {
        const auto text = after(key);
        if (text && text->starts_with("True")) return true;
        if (text && text->starts_with("False")) return false;
        return std::nullopt;
    }

    std::optional<std::vector<std::int64_t>> tuple(std::string_view key) const {
        const auto text = after(key);
        if (!text || text->front() != '(') return std::nullopt;
        std::vector<std::int64_t> numbers;
        const char* at = text->data() + 1;
        const char* const end = text->data() + text->size();
        while (at != end && *at != ')') {
            if (*at == ' ' || *at == ',') {
                ++at;
                continue;
            }
            std::int64_t number = 0;
            const auto parsed = std::from_chars(at, end, number);
            if (parsed.ec != std::errc{} || number < 0) return std::nullopt;
            numbers.push_back(number);
            at = parsed.ptr;
        }
        if (at == end) return std::nullopt;
        return numbers;
    }

  private:
    std::string_view text_;
};

}  // namespace

void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, DataType type, const void* data,
               std::int64_t row_stride) {
    const Stored stored = stored_as(type);
    const std::int64_t columns = shape.empty() ? 1 : shape.back();
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    write_file_atomically(path, [&](const FileSink& sink) {
        const std::string head = header(shape, stored.descr);
        sink(std::as_bytes(std::span(head)));
        std::vector<std::byte> row(static_cast<std::size_t>(columns) * size_of(stored.type));
        for (std::int64_t r = 0; r < rows; ++r) {
            convert(type, static_cast<const std::byte*>(data) + r * row_stride * size_of(type), stored.type, row.data(),
                    columns);
            sink(row);
        }
    });
}

namespace {

/// An array as it lies in a file, flattened in C order.
struct FileArray {
    std::vector<std::int64_t> shape;
    std::string descr, content;
    std::size_t first = 0, count = 0, size = 0;  ///< the elements' offset in `content`, number, bytes each

    const char* at(std::size_t i) const { return content.data() + first + i * size; }
};

/// A NumPy type that may be read, and the bytes of an element.
struct ReadableType {
    std::string_view descr;
    std::size_t size;
};

/// `types` is what is readable, in words, as "tokens are '<i4' or '<i8' (int32 or int64)".
FileArray parse_array(std::string content, const std::filesystem::path& path, std::span<const ReadableType> readable,
                      std::string_view types) {
    const auto wrong = [&](const std::string& what) { return UsageError(path.string() + ": " + what); };
    if (!content.starts_with(magic)) throw wrong("not a .npy file; it should begin with \\x93NUMPY");

    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(content[i])); };
    const std::size_t version = content.size() > magic.size() ? byte(magic.size()) : 0;
    const std::size_t length_bytes = version == 1 ? 2 : 4, start = magic.size() + 2 + length_bytes;
    if (version != 1 && version != 2) throw wrong(fmt::format(".npy format {}; 1 and 2 are known", version));
    if (content.size() < start) throw wrong("truncated in its header");
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(magic.size() + 2 + i) << 8 * i;
    if (length > content.size() - start)
        throw wrong(fmt::format("header of {} bytes but only {} bytes follow", length, content.size() - start));

    const Dictionary dictionary(std::string_view(content).substr(start, length));
    const auto descr = dictionary.quoted("descr");
    const auto fortran_order = dictionary.boolean("fortran_order");
    auto shape = dictionary.tuple("shape");
    if (!descr || !fortran_order || !shape) throw wrong("header lacks a valid 'descr', 'fortran_order' or 'shape'");
    const auto type = std::ranges::find(readable, *descr, &ReadableType::descr);
    if (type == readable.end()) throw wrong(fmt::format("elements of type '{}'; {}", *descr, types));
    if (*fortran_order && shape->size() > 1) throw wrong("Fortran order; save it with numpy.ascontiguousarray");

    const std::size_t size = type->size, available = content.size() - start - length;
    std::size_t count = 1;
    for (const std::int64_t extent : *shape)
        if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count)) count = available + 1;
    if (count > available / size || available != count * size)
        throw wrong(fmt::format("shape {} needs {} bytes an element, but {} bytes of data follow the header",
                                shape_text(*shape), size, available));

    return {std::move(*shape), *descr, std::move(content), start + length, count, size};
}

/// `size` bytes at `from`; nothing where it is an int64 no more.
std::optional<std::int64_t> integer_of(const char* from, std::size_t size, bool is_signed, bool is_big) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < size; ++i)
        bits |= std::uint64_t{static_cast<unsigned char>(from[is_big ? size - 1 - i : i])} << 8 * i;
    if (!is_signed) return bits >> 63 != 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(bits));
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace

bool is_npy(std::string_view content) { return content.starts_with(magic); }

IntegerArray parse_npy_integers(std::string content, const std::filesystem::path& path) {
    constexpr ReadableType types[] = {{"|i1", 1}, {"<i2", 2}, {"<i4", 4}, {"<i8", 8}, {"|u1", 1},
                                      {"<u2", 2}, {"<u4", 4}, {"<u8", 8}, {">i2", 2}, {">i4", 4},
                                      {">i8", 8}, {">u2", 2}, {">u4", 4}, {">u8", 8}};
    FileArray file =
        parse_array(std::move(content), path, types, "tokens are integers, such as '<u2' (uint16) or '<i4'");
    const bool is_signed = file.descr[1] == 'i', is_big = file.descr[0] == '>';
    IntegerArray array{std::move(file.shape), {}};
    array.values.reserve(file.count);
    for (std::size_t i = 0; i < file.count; ++i) {
        const std::optional<std::int64_t> value = integer_of(file.at(i), file.size, is_signed, is_big);
        if (!value) throw UsageError(fmt::format("{}: number {} is 2^63 or more", path.string(), i));
        array.values.push_back(*value);
    }
    return array;
}

IntegerArray read_npy_integers(const std::filesystem::path& path) {
    return parse_npy_integers(read_whole_file(path), path);
}

FloatArray read_npy_floats(const std::filesystem::path& path) {
    constexpr ReadableType types[] = {{"<f2", 2}, {"<f4", 4}, {"<f8", 8}};
    constexpr DataType read_as[] = {DataType::fp16, DataType::fp32, DataType::fp64};
    FileArray file = parse_array(read_whole_file(path), path, types, "an input of numbers is '<f2', '<f4' or '<f8'");
    const auto index = std::ranges::find(types, file.descr, &ReadableType::descr) - std::begin(types);
    FloatArray array{std::move(file.shape), std::vector<double>(file.count)};
    convert(read_as[index], file.at(0), DataType::fp64, array.values.data(), static_cast<std::int64_t>(file.count));
    return array;
}

}  // namespace kbench
