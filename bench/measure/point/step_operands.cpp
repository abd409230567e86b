// Fills operands on the host and brings them to the device, packed where the computation wants that.
#include "bench/measure/point/step_operands.h"

#include <algorithm>
#include <optional>

#include "bench/plan/data/random.h"

namespace kbench {
namespace {

/// Lengths, say, of which all are full: while what goes wrong is what comes behind the end of shorter ones.
bool is_usually_alike(const Operand& operand) {
    return operand.type == DataType::int32 && operand.contents.kind == Contents::Kind::listed &&
           operand.contents.bound > 0;
}

}  // namespace

StepOperands::StepOperands(const Step& step, const Computation& computation, Precision precision, Device& device,
                           std::uint64_t seed, std::int64_t most_of_others)
    : device_(device), seed_(seed), most_of_others_(most_of_others), list_(operands(step, precision)) {
    for (std::size_t i = 0; i < list_.size(); ++i) add(computation, i);
}

/// Seeded random contents as the op says; rows and columns that pad the operand are 0. Unless `usual`, whole numbers
/// below a bound stand where the usual ones are listed, but for the first row's.
void StepOperands::fill(std::size_t i, bool usual, std::byte* data) const {
    const Operand& operand = list_[i];
    const std::uint64_t seed = seed_ + i;
    const std::int64_t used = operand.rows * operand.stride * static_cast<std::int64_t>(size_of(operand.type));
    std::fill(data + (operand.stride > operand.columns ? 0 : used), data + operand.bytes(), std::byte{0});
    fill_contents(operand.contents, seed, operand.name, operand.type, operand.rows, operand.columns, data,
                  operand.stride);
    if (!usual && is_usually_alike(operand))
        fill_contents(Contents::below(std::min(operand.contents.bound, most_of_others_ + 1)), seed, operand.name,
                      operand.type, operand.rows - 1, operand.columns,
                      data + operand.stride * static_cast<std::int64_t>(sizeof(std::int32_t)), operand.stride);
}

void StepOperands::add(const Computation& computation, std::size_t i) {
    const Operand& operand = list_[i];
    const auto bytes = static_cast<std::size_t>(operand.bytes());
    const std::optional<std::size_t> packed = computation.packed_bytes(i);
    DeviceBuffer& memory = memory_.emplace_back(device_, packed.value_or(bytes));
    pointers_.push_back(memory.data());
    reference::View& view =
        views_.emplace_back(reference::View{nullptr, operand.type, operand.rows, operand.columns, operand.stride});
    if (operand.use == OperandUse::output) {
        // NaN in every floating-point format, so that what is not written shows.
        device_.fill(memory.data(), 0xff, bytes);
        return;
    }
    auto* data = packed ? nullptr : static_cast<std::byte*>(device_.host_view(memory.data()));
    const bool shared = data != nullptr;
    if (!shared) data = host_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
    view.data = data;
    fill(i, false, data);
    if (packed)
        computation.pack(i, data, memory.data());
    else if (!shared)
        device_.upload(memory.data(), data, bytes);
}

void StepOperands::make_usual() {
    host_.clear();
    for (reference::View& view : views_) view.data = nullptr;
    for (std::size_t i = 0; i < list_.size(); ++i) {
        if (!is_usually_alike(list_[i])) continue;
        std::vector<std::byte> numbers(static_cast<std::size_t>(list_[i].bytes()));
        fill(i, true, numbers.data());
        device_.upload(pointers_[i], numbers.data(), numbers.size());
    }
}

}  // namespace kbench
