// The table of kinds, and the questions that any op answers whatever its kind.
#include "models/ops/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

template <OpStruct... T>
std::vector<const OpKind*> rows_of(OpList<T...>) {
    return {&op_kind<T>()...};
}

std::vector<const OpKind*>& all_kinds() {
    static std::vector<const OpKind*> kinds = rows_of(BuiltInOps());
    return kinds;
}

void refuse_other(const OpKind& kind, Direction direction) {
    if (!kind.has(direction)) throw Unsupported(fmt::format("{} has no direction {}", kind.name, name(direction)));
}

}  // namespace

std::span<const OpKind* const> op_kinds() { return all_kinds(); }

const OpKind* find_op_kind(std::string_view name) {
    const auto found = std::ranges::find(all_kinds(), name, &OpKind::name);
    return found == all_kinds().end() ? nullptr : *found;
}

const OpKind& require_op_kind(std::string_view name, std::string_view context) {
    if (const OpKind* kind = find_op_kind(name)) return *kind;
    throw UsageError(fmt::format("{}unknown op '{}'; {} (`kbench list ops`)", context, name,
                                 nearest_name(name, all_kinds(), [](const OpKind* kind) { return kind->name; })));
}

std::size_t index_of(const OpKind& kind) {
    return static_cast<std::size_t>(std::ranges::find(all_kinds(), &kind) - all_kinds().begin());
}

void add_op_kind(const OpKind& kind) {
    if (kind.name.empty() || kind.name.find_first_of(",=* /") != std::string_view::npos)
        throw std::invalid_argument(fmt::format("an op kind cannot be called '{}': --op could not name it", kind.name));
    if (find_op_kind(kind.name) != nullptr)
        throw std::invalid_argument(fmt::format("there is an op kind '{}' already", kind.name));
    all_kinds().push_back(&kind);
}

bool OpKind::has(Direction direction) const { return std::ranges::find(directions, direction) != directions.end(); }

Direction direction_along(const OpKind& kind, Direction of_head) {
    const bool is_of_a_product = of_head == Direction::dgrad || of_head == Direction::wgrad;
    return is_of_a_product && !kind.has(of_head) ? Direction::bwd : of_head;
}

std::vector<OperandSpec> Op::operands(Direction direction) const {
    refuse_other(*kind_, direction);
    return kind_->operands(value_.get(), direction);
}

Work Op::work(Direction direction) const {
    refuse_other(*kind_, direction);
    return kind_->work(value_.get(), direction);
}

DataType data_type(ElementType element, Precision precision) {
    if (element == ElementType::int32) return DataType::int32;
    const DataType stored = storage_type(precision);
    return element == ElementType::at_least_fp32 && size_of(stored) < 4 ? DataType::fp32 : stored;
}

}  // namespace kbench
