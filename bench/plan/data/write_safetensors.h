// Writes a Hugging Face safetensors file (safetensors.h reads them).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kbench/precision.h"
#include "models/base/write_file.h"

namespace kbench {

/// A tensor of a file that is to be written; its bytes come when their turn does, so that one is in memory at a time.
struct SafetensorsTensor {
    std::string name;
    DataType type;
    std::vector<std::int64_t> shape;
    /// Hands all elements to the sink, row-major and dense.
    std::function<void(const FileSink& sink)> write;
};

/// Header, then tensor by tensor in the order given. Streams to a temporary file and renames it. Throws UsageError when
/// the file cannot be written, std::logic_error when a tensor hands over too many bytes or too few.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsTensor> tensors);

}  // namespace kbench
