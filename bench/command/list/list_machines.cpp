// kbench list machines: the machines that kbench knows from datasheets, and where each of their roofs is stated.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "analysis/machine/ceilings.h"
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

/// The best of `ceilings` that the machine has, with its unit.
std::string best(const MachineFile& machine, std::initializer_list<std::string_view> ceilings) {
    std::optional<double> value;
    for (const std::string_view ceiling : ceilings) value = std::max(value, machine.roof(ceiling));
    return value ? fmt::format("{} {}", significant(*value), ceiling_kind(*ceilings.begin()).unit) : "-";
}

void print_all() {
    Table table({{"id", Align::left}, {"name", Align::left}, {"memory"}, {"fp32"}, {"fp16 or bf16"}});
    for (const MachineFile& machine : machines()) {
        if (machine.kind == "gpu")
            table.add_row({machine.id, machine.name, best(machine, {"dram_read"}), best(machine, {"fp32_plain"}),
                           best(machine, {"fp16_tensor"})});
        else
            table.add_row({machine.id, machine.name, best(machine, {"cpu_dram_read"}),
                           best(machine, {"avx512_fp32", "avx2_fp32"}),
                           best(machine, {"amx_bf16", "avx512_bf16", "avx512_fp16"})});
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
