// kbench list machines: the machines that kbench knows from datasheets, and where each of their roofs is stated.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "analysis/machine/ceilings.h"
#include "analysis/machine/machine_group.h"
#include "analysis/table/table.h"
#include "bench/command/command.h"
#include "bench/command/machine_path.h"
#include "bench/command/option_table.h"
#include "bench/device/console.h"
#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr std::size_t unbounded = 10'000, note_width = 120;

/// What the machine's file states for the ceiling of `roof`, with its unit; "-" where it states none.
std::string stated(const MachineFile& machine, const std::optional<Roof>& roof) {
    if (!roof) return "-";
    return fmt::format("{} {}", significant(machine.roof(roof->ceiling).value()), ceiling_kind(roof->ceiling).unit);
}

std::optional<Roof> faster(const std::optional<Roof>& a, const std::optional<Roof>& b) {
    return !a || (b && b->per_s > a->per_s) ? b : a;
}

void print_all() {
    Table table(
        {{"group", Align::left}, {"id", Align::left}, {"name", Align::left}, {"memory"}, {"fp32"}, {"fp16 or bf16"}});
    for (const std::string_view group : machine_groups())
        for (const MachineFile& machine : machines()) {
            if (machine_group(machine) != group) continue;
            const Roofs roofs(machine);
            const std::optional<Roof> half = faster(roofs.matrix(Precision::fp16), roofs.matrix(Precision::bf16));
            table.add_row({std::string(group), machine.id, machine.name, stated(machine, roofs.bandwidth(Level::dram)),
                           stated(machine, roofs.matrix(Precision::fp32)), stated(machine, half)});
        }
    put("{}Datasheet values, dense. `kbench list machines --id ID` has all of a machine with their sources.\n",
        table.text(0, unbounded));
}

void print_one(const MachineFile& machine) {
    put("{}: {}\n", machine.id, machine.name);
    const auto field = [](std::string_view name, const auto& value) {
        if (value) put("  {:<16} {}\n", name, *value);
    };
    put("  {:<16} {}\n", "device names", fmt::join(machine.matches, ", "));
    field("SMs", machine.multiprocessors);
    field("cores", machine.cores);
    field("clock MHz", machine.boost_clock_mhz);
    field("memory GB", machine.memory_gb);
    field("L2 MB", machine.l2_mb);
    field("TDP W", machine.tdp_w);
    if (!machine.note.empty()) put("{}\n", wrap(fmt::format("  {:<16} ", "note"), one_line(machine.note), note_width));
    Table table({{"ceiling", Align::left}, {"value"}, {"unit", Align::left}, {"source", Align::left}});
    for (const MachineFile::RoofValue& roof : machine.roofs)
        table.add_row({roof.ceiling, significant(roof.value, 4), std::string(ceiling_kind(roof.ceiling).unit),
                       one_line(roof.source)});
    put("{}", table.text(2, unbounded));
}

}  // namespace

void list_machines(const std::vector<std::string>& options) {
    struct Request {
        std::string id;
    } request;
    static const OptionOf<Request> table[] = {
        {"--id", "NAME", "", "one machine with the sources of its roofs; or the path of a machine file (.json)",
         [](Request& r, const std::string& text) { r.id = text; }},
    };
    constexpr CommandText command{"kbench list machines", "Lists the machines whose datasheets kbench knows."};
    const std::string help = parse_options(command, table, request, options);
    if (!help.empty()) {
        put("{}", help);
        return;
    }
    const std::string& id = request.id;
    if (id.empty()) return print_all();
    print_one(machine_at(id));
}

}  // namespace kbench
