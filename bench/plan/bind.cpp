#include "bench/plan/bind.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kbench {

Slot::Slot(const std::vector<Operand>& operands, std::string_view name, const std::vector<bool>& taken) {
    const bool may_be_missing = name.ends_with('?');
    const std::string_view wanted = name.substr(0, name.size() - (may_be_missing ? 1 : 0));
    for (std::size_t i = 0; i < operands.size() && is_missing(); ++i)
        if (operands[i].name == wanted && (taken.empty() || !taken[i])) index_ = i;
    if (is_missing() && !may_be_missing) throw std::logic_error(fmt::format("the step has no operand {}", wanted));
}

Binding::Binding(const Step& of, Precision in)
    : step(of), precision(in), operands(kbench::operands(of, in)), taken(operands.size(), false) {}

Slot Binding::take(std::string_view name, bool is_written) {
    const Slot slot(operands, name, taken);
    if (slot.is_missing()) return slot;
    const OperandUse use = operands[slot.index()].use;
    const bool is_only_read = use == OperandUse::input || use == OperandUse::weight;
    if (is_written ? is_only_read : use == OperandUse::output)
        throw std::logic_error(fmt::format("operand {} of the step is {}", name, is_written ? "only read" : "written"));
    taken[slot.index()] = true;
    return slot;
}

void Binding::expect_all_taken() const {
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (!taken[i]) throw std::logic_error(fmt::format("operand {} of the step is not taken", operands[i].name));
}

}  // namespace kbench
