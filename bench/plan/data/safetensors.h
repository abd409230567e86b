// A Hugging Face safetensors file, memory-mapped: eight bytes of header length, a JSON header, then the tensors' bytes
// (https://huggingface.co/docs/safetensors, "Format").
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/precision.h"

namespace kbench {

/// A tensor of a file.
struct SafetensorsEntry {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;  ///< bytes from the start of the data
};

/// How weights of that dtype are stored; nothing where a weight cannot have it.
std::optional<DataType> weight_type(std::string_view dtype);

/// Every error is a UsageError of one line: the file, the tensor, what was found and what would be right.
class Safetensors {
  public:
    using Entries = std::map<std::string, SafetensorsEntry, std::less<>>;

    /// Maps the file and checks its whole header: length, JSON, and for every tensor its offsets against the file, its
    /// shape and the other tensors.
    explicit Safetensors(const std::filesystem::path& path);
    ~Safetensors();
    Safetensors(const Safetensors&) = delete;
    Safetensors& operator=(const Safetensors&) = delete;

    const Entries& entries() const { return entries_; }
    const std::byte* data(const SafetensorsEntry& entry) const { return data_ + entry.begin; }
    const std::filesystem::path& path() const { return path_; }

  private:
    void parse(std::string_view header, std::uint64_t data_bytes);
    void check_overlaps() const;

    std::filesystem::path path_;
    Entries entries_;
    const std::byte* mapping_ = nullptr;
    const std::byte* data_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

}  // namespace kbench
