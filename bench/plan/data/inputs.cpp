// Reads a model's inputs from .npy files, checks them, or makes random ones.
#include "bench/plan/data/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/plan/data/array_shape.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/data/npy.h"
#include "bench/plan/data/random.h"
#include "bench/plan/data/tokens.h"
#include "kbench/error.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

void read_numbers(const Tensor& tensor, const std::filesystem::path& file, DataType type, std::byte* out) {
    const FloatArray array = read_npy_floats(file);
    require_shape(file, tensor.name, array.shape, tensor.shape);
    const auto count = static_cast<std::int64_t>(array.values.size());
    for (std::int64_t i = 0; i < count; ++i)
        if (const double value = array.values[static_cast<std::size_t>(i)]; !std::isfinite(value))
            throw UsageError(fmt::format("{}: number {} is {}; it should be finite", file.string(), i, value));
    convert(DataType::fp64, array.values.data(), type, out, count);
}

}  // namespace

void check_names(const Model& model, const std::vector<TensorId>& ids, const FilesByName& files,
                 std::string_view option) {
    for (const auto& [name, file] : files) {
        const auto name_of = [&](TensorId id) { return model.tensors[id].name; };
        if (std::ranges::find(ids, name, name_of) == ids.end())
            throw UsageError(fmt::format("{} {}={}: {} has no such; {}", option, name, file.string(), model.name,
                                         nearest_name(name, ids, name_of)));
    }
}

std::vector<std::byte> input_bytes(const Tensor& tensor, const Operand& operand, const std::filesystem::path& file,
                                   std::uint64_t seed) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
    if (file.empty()) {
        fill_random(tensor, seed, operand.type, bytes.data(), tensor.columns());
    } else if (operand.type == DataType::int32) {
        const bool one_a_row = tensor.contents.kind == Contents::Kind::listed && tensor.columns() == 1;
        const std::vector<std::int32_t> numbers =
            one_a_row ? read_numbers_of_rows(file, tensor.rows(), tensor.contents.bound, tensor.name)
                      : read_tokens(file, tensor.rows(), tensor.columns(), tensor.contents.bound, tensor.name);
        std::ranges::copy(std::as_bytes(std::span(numbers)), bytes.begin());
    } else {
        read_numbers(tensor, file, operand.type, bytes.data());
    }
    return bytes;
}

}  // namespace kbench
