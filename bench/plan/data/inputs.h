// What a model is run on: its inputs, from files or random.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kbench/step.h"
#include "models/model.h"

namespace kbench {

/// Files by the name of an input or output of the model.
using FilesByName = std::map<std::string, std::filesystem::path, std::less<>>;

/// Throws UsageError where `files`, given with `option`, name what is not among `ids`.
void check_names(const Model& model, const std::vector<TensorId>& ids, const FilesByName& files,
                 std::string_view option);

/// The bytes of input `tensor` as `operand` lies in memory, which is dense: read from `file`, or random where it is
/// empty. Integers are read as read_tokens does, one a row as read_numbers_of_rows does; numbers from a .npy file whose
/// shape fits the tensor's (array_shape.h). Throws UsageError.
std::vector<std::byte> input_bytes(const Tensor& tensor, const Operand& operand, const std::filesystem::path& file,
                                   std::uint64_t seed);

}  // namespace kbench
