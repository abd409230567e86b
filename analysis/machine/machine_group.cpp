// A row for each group; of those whose beginning fits, the longest beginning is meant.
#include "analysis/machine/machine_group.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace kbench {
namespace {

struct GroupRow {
    std::string_view group, kind, name_begins;
};
constexpr GroupRow rows_by_maker[] = {
    {"NVIDIA data centre GPU", "gpu", "NVIDIA "},
    {"NVIDIA GeForce GPU", "gpu", "NVIDIA GeForce "},
    {"AMD GPU", "gpu", "AMD "},
    {"other GPU", "gpu", ""},
    {"Intel CPU", "cpu", "Intel "},
    {"AMD CPU", "cpu", "AMD "},
    {"AWS CPU", "cpu", "AWS "},
    {"other CPU", "cpu", ""},
};

constexpr auto names_in_order = [] {
    std::array<std::string_view, std::size(rows_by_maker)> names{};
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = rows_by_maker[i].group;
    return names;
}();

}  // namespace

std::span<const std::string_view> machine_groups() { return names_in_order; }

std::string_view machine_group(const MachineFile& machine) {
    const GroupRow* best = nullptr;
    for (const GroupRow& row : rows_by_maker) {
        if (row.kind != machine.kind || !machine.name.starts_with(row.name_begins)) continue;
        if (best == nullptr || row.name_begins.size() > best->name_begins.size()) best = &row;
    }
    if (best == nullptr) throw std::invalid_argument(machine.id + " is of no kind of machine");
    return best->group;
}

}  // namespace kbench
