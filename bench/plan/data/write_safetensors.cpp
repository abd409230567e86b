// Eight bytes of header length, a JSON header padded with blanks to a multiple of eight, the tensors' bytes
// (https://huggingface.co/docs/safetensors, "Format").
#include "bench/plan/data/write_safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace kbench {
namespace {

std::string_view dtype(DataType type) {
    switch (type) {
        case DataType::fp16: return "F16";
        case DataType::bf16: return "BF16";
        case DataType::fp32: return "F32";
        case DataType::fp64: return "F64";
        case DataType::int32: break;
    }
    return "I32";
}

std::uint64_t bytes_of(const SafetensorsTensor& tensor) {
    return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::uint64_t{size_of(tensor.type)},
                           [](std::uint64_t bytes, std::int64_t n) { return bytes * static_cast<std::uint64_t>(n); });
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsTensor> tensors) {
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"}};
    std::uint64_t offset = 0;
    for (const SafetensorsTensor& tensor : tensors) {
        const std::uint64_t end = offset + bytes_of(tensor);
        header[tensor.name] = {{"dtype", dtype(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    std::array<std::byte, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(text.size() >> (8 * i));

    write_file_atomically(path, [&](const FileSink& sink) {
        sink(length);
        sink(std::as_bytes(std::span(text)));
        for (const SafetensorsTensor& tensor : tensors) {
            std::uint64_t written = 0;
            tensor.write([&](std::span<const std::byte> bytes) {
                written += bytes.size();
                sink(bytes);
            });
            if (written != bytes_of(tensor))
                throw std::logic_error(
                    fmt::format("{}: {} bytes of {} were handed over", tensor.name, written, bytes_of(tensor)));
        }
    });
}

}  // namespace kbench
