// A Hugging Face safetensors file, memory-mapped: eight bytes of header length, a JSON header, then the tensors' bytes
// (https://huggingface.co/docs/safetensors, "Format").
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/data/convert.h"
#include "models/model.h"

namespace kbench {

/// Every error is a UsageError of one line: the file, the tensor, what was found and what would be right.
class Safetensors {
  public:
    /// Maps the file and checks its whole header: length, JSON, and for every tensor its offsets against the file, its
    /// shape and the other tensors.
    explicit Safetensors(const std::filesystem::path& path);
    ~Safetensors();
    Safetensors(const Safetensors&) = delete;
    Safetensors& operator=(const Safetensors&) = delete;

    /// Checks that every weight of `model` is here with the right shape and a type that can be read. Names may carry
    /// the prefix "transformer."; tensors that the model does not have (masks, a tied lm_head.weight) are ignored.
    void check(const Model& model) const;

    /// Converts one weight to `type` into rows `row_stride` elements apart; what lies between them is left alone.
    /// Refuses numbers that are not `allowed` in that type. On all OpenMP threads.
    void load(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride,
              Allowed allowed = Allowed::finite) const;

    /// Whether load would find a tensor of that name.
    bool has(const std::string& name) const { return find(name) != nullptr; }

    const std::filesystem::path& path() const { return path_; }

  private:
    struct Entry {
        std::string dtype;
        std::vector<std::int64_t> shape;
        std::uint64_t begin = 0, end = 0;  ///< bytes from the start of the data
    };

    void parse(std::string_view header, std::uint64_t data_bytes);
    void check_overlaps() const;
    const Entry* find(const std::string& name) const;
    DataType check_entry(const Tensor& tensor, const Entry& entry) const;

    std::filesystem::path path_;
    std::map<std::string, Entry, std::less<>> entries_;
    const std::byte* mapping_ = nullptr;
    const std::byte* data_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

}  // namespace kbench
