// Compares everything in the file with the file's size before using it: a wrong offset would be a crash in the
// mapping, or worse, plausible weights.
#include "bench/plan/data/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "bench/plan/data/descriptor.h"
#include "bench/plan/data/other_formats.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

using nlohmann::json;

/// The types of the format that have a fixed size; `type` for those that a weight may have.
struct Dtype {
    std::string_view name;
    std::uint64_t bytes;
    std::optional<DataType> type;
};
constexpr Dtype dtypes[] = {
    {"F16", 2, DataType::fp16},
    {"BF16", 2, DataType::bf16},
    {"F32", 4, DataType::fp32},
    {"F64", 8, DataType::fp64},
    {"BOOL", 1, {}},
    {"U8", 1, {}},
    {"I8", 1, {}},
    {"I16", 2, {}},
    {"U16", 2, {}},
    {"I32", 4, {}},
    {"U32", 4, {}},
    {"I64", 8, {}},
    {"U64", 8, {}},
    {"F8_E4M3", 1, {}},
    {"F8_E5M2", 1, {}},
};

const Dtype* find_dtype(std::string_view name) {
    const auto* found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& d) { return d.name == name; });
    return found == std::end(dtypes) ? nullptr : found;
}

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit

bool is_natural(const json& value) { return value.is_number_unsigned(); }

bool are_naturals(const json& value) { return value.is_array() && std::all_of(value.begin(), value.end(), is_natural); }

/// Parses, and refuses a name that stands twice: JSON would silently keep the last.
json parse_header(std::string_view text, const std::string& file) {
    std::set<std::string> names;
    std::string twice;
    const auto callback = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    check_json_text(text, file);
    json header;
    try {
        header = json::parse(text.begin(), text.end(), callback);
    } catch (const json::exception& error) {
        throw UsageError(fmt::format("{}: header is not JSON: {}", file, parser_message(error)));
    }
    if (!header.is_object())
        throw UsageError(fmt::format("{}: header is a JSON {}; it should be an object", file, header.type_name()));
    if (!twice.empty()) throw UsageError(fmt::format("{}: {}: stands twice in the header", file, twice));
    return header;
}

}  // namespace

std::optional<DataType> weight_type(std::string_view dtype) {
    const Dtype* known = find_dtype(dtype);
    return known == nullptr ? std::nullopt : known->type;
}

Safetensors::Safetensors(const std::filesystem::path& path) : path_(path) {
    const std::string file = path.string();
    // Never waits for somebody to write into a pipe, which cannot be mapped anyway.
    const Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0)
        throw UsageError(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
    if (!S_ISREG(status.st_mode))
        throw UsageError(fmt::format("{}: not a regular file{}; it should be a .safetensors file", file,
                                     S_ISFIFO(status.st_mode) ? " but a pipe, which cannot be mapped" : ""));
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    std::string first(static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, recognised_bytes)), '\0');
    if (pread(descriptor.get(), first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()))
        throw UsageError(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
    std::uint64_t header_bytes = 0;
    if (first.size() >= length_bytes) std::memcpy(&header_bytes, first.data(), length_bytes);
    const bool fits =
        file_bytes >= length_bytes && header_bytes <= max_header_bytes && header_bytes <= file_bytes - length_bytes;
    if (!fits || file_bytes == length_bytes || first[length_bytes] != '{')
        if (const std::string other = other_format(first); !other.empty())
            throw UsageError(fmt::format("{}: {}", file, other));
    if (file_bytes < length_bytes)
        throw UsageError(
            fmt::format("{}: {} bytes; a safetensors file begins with 8 bytes of header length", file, file_bytes));
    if (!fits)
        throw UsageError(
            fmt::format("{}: header of {} bytes, but {} bytes follow its length; truncated or not a safetensors file",
                        file, header_bytes, file_bytes - length_bytes));

    void* mapping = mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (mapping == MAP_FAILED) throw UsageError(fmt::format("{}: cannot be mapped: {}", file, std::strerror(errno)));
    madvise(mapping, file_bytes, MADV_WILLNEED);  // read ahead while memory is planned
    mapping_ = static_cast<const std::byte*>(mapping);
    mapped_bytes_ = file_bytes;
    data_ = mapping_ + length_bytes + header_bytes;
    try {
        parse({reinterpret_cast<const char*>(mapping_) + length_bytes, header_bytes},
              file_bytes - length_bytes - header_bytes);
        check_overlaps();
    } catch (...) {
        munmap(mapping, file_bytes);
        throw;
    }
}

Safetensors::~Safetensors() { munmap(const_cast<std::byte*>(mapping_), mapped_bytes_); }

void Safetensors::parse(std::string_view header, std::uint64_t data_bytes) {
    const json tensors = parse_header(header, path_.string());
    for (const auto& [name, value] : tensors.items()) {
        if (name == "__metadata__") continue;
        const auto wrong = [&](const std::string& what) {
            return UsageError(fmt::format("{}: {}: {}", path_.string(), name, what));
        };
        if (!value.is_object()) throw wrong(fmt::format("is a JSON {}; it should be an object", value.type_name()));
        const json dtype = value.value("dtype", json()), shape = value.value("shape", json()),
                   offsets = value.value("data_offsets", json());
        if (!dtype.is_string()) throw wrong(fmt::format("dtype is {}; it should be a string", dtype.dump()));
        if (!are_naturals(shape))
            throw wrong(fmt::format("shape is {}; it should be an array of integers >= 0", shape.dump()));
        if (!are_naturals(offsets) || offsets.size() != 2)
            throw wrong(fmt::format("data_offsets are {}; they should be [begin, end]", offsets.dump()));

        SafetensorsEntry entry{dtype, shape, offsets[0], offsets[1]};
        if (entry.begin > entry.end || entry.end > data_bytes)
            throw wrong(fmt::format("data_offsets are [{}, {}], but {} bytes of data follow the header; truncated?",
                                    entry.begin, entry.end, data_bytes));
        if (const Dtype* known = find_dtype(entry.dtype)) {
            std::uint64_t needed = known->bytes;
            bool overflow = false;
            for (const json& extent : shape)
                overflow |= __builtin_mul_overflow(needed, extent.get<std::uint64_t>(), &needed);
            if (overflow || needed != entry.end - entry.begin)
                throw wrong(fmt::format("{} {} needs {} bytes, but data_offsets [{}, {}] hold {}", entry.dtype,
                                        shape.dump(), overflow ? "more than 2^64" : std::to_string(needed), entry.begin,
                                        entry.end, entry.end - entry.begin));
        }
        entries_.emplace(name, std::move(entry));
    }
}

void Safetensors::check_overlaps() const {
    std::vector<std::pair<const SafetensorsEntry*, std::string_view>> in_order;
    for (const auto& [name, entry] : entries_)
        if (entry.end > entry.begin) in_order.emplace_back(&entry, name);
    std::sort(in_order.begin(), in_order.end(), [](auto& a, auto& b) { return a.first->begin < b.first->begin; });
    for (std::size_t i = 1; i < in_order.size(); ++i) {
        const auto& [before, before_name] = in_order[i - 1];
        const auto& [entry, entry_name] = in_order[i];
        if (entry->begin < before->end)
            throw UsageError(fmt::format("{}: {}: data_offsets [{}, {}] overlap those of {}, [{}, {}]", path_.string(),
                                         entry_name, entry->begin, entry->end, before_name, before->begin,
                                         before->end));
    }
}

}  // namespace kbench
