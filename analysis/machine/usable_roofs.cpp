// A row for each reason why a measured ceiling is no roof.
#include "analysis/machine/usable_roofs.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/machine/ceiling_kinds.h"
#include "analysis/machine/machine.h"
#include "analysis/machine/tensor_cores.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string by_slower_instruction(const Ceiling& ceiling, const GpuInfo& gpu, const MachineFile*) {
    const auto is_of = [&](Precision precision) { return ceiling.name == fmt::format("{}_tensor", name(precision)); };
    return std::ranges::any_of(tensor_cores(gpu).precisions, is_of) ? no_tensor_roof(gpu) : "";
}

/// What the datasheet states, at the clock at which the ceiling was measured where that is lower than its own.
double stated_at_clock(const Ceiling& ceiling, const MachineFile& machine) {
    const bool follows = is_within_sm(ceiling.name) && ceiling.clock_mhz > 0 && machine.boost_clock_mhz;
    return *ceiling.datasheet.value * (follows ? std::min(1.0, ceiling.clock_mhz / *machine.boost_clock_mhz) : 1);
}

std::string by_part_of_unit(const Ceiling& ceiling, const GpuInfo&, const MachineFile* machine) {
    if (machine == nullptr || !ceiling.value.value || !ceiling.datasheet.value) return "";
    const double stated = stated_at_clock(ceiling, *machine), share = *ceiling.value.value / stated;
    if (!(stated > 0) || share >= least_of_datasheet) return "";
    return fmt::format(
        "the probe reached {} {}, {} of what the datasheet states at its clock: it does not use all of the unit, or something else used the GPU",
        significant(*ceiling.value.value), ceiling_kind(ceiling.name).unit, percent(share));
}

constexpr std::string (*reasons[])(const Ceiling&, const GpuInfo&, const MachineFile*) = {by_slower_instruction,
                                                                                          by_part_of_unit};

}  // namespace

std::string no_tensor_roof(const GpuInfo& gpu) {
    const TensorCores& cores = tensor_cores(gpu);
    if (cores.has_probe) return "";
    return fmt::format(
        "tensor cores of compute capability {}.{} are faster by instructions that kbench has no probe of ({}) than by mma.sync",
        gpu.compute_capability_major, gpu.compute_capability_minor, cores.instruction);
}

void leave_out_unusable(CeilingRun& run, const GpuInfo& gpu, const MachineFile* machine) {
    for (Ceiling& ceiling : run.ceilings) {
        const bool is_known = std::ranges::find(ceiling_kinds(), ceiling.name, &CeilingKind::name) !=
                              ceiling_kinds().end();  // a result may be of a newer kbench
        if (!is_known || !ceiling.value.value) continue;
        for (const auto reason_of : reasons) {
            const std::string reason = reason_of(ceiling, gpu, machine);
            if (reason.empty()) continue;
            ceiling.value = Quantity::unavailable(reason);
            ceiling.low = ceiling.high = 0;
            break;
        }
    }
}

CeilingRun usable_ceilings(const Result& result) {
    CeilingRun run = result.ceilings;
    if (result.environment.gpu)
        leave_out_unusable(run, *result.environment.gpu, machine_of(result.environment, "cuda"));
    return run;
}

}  // namespace kbench
