// Which ceiling is the roof of what, measured or as a datasheet states it.
#include "analysis/machine/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/machine/machine.h"
#include "analysis/machine/usable_roofs.h"
#include "kbench/statistics.h"

namespace kbench {
namespace {

using Names = std::vector<std::string_view>;

double per_second(std::string_view unit) { return unit == "TFLOP/s" ? 1e12 : 1e9; }

Names bandwidth_names(Level level, bool cpu) {
    if (cpu) return level == Level::dram ? Names{"cpu_dram_read", "cpu_dram_triad"} : Names{};
    switch (level) {
        case Level::dram: return {"dram_read", "dram_write", "dram_copy", "dram_triad"};
        case Level::l2: return {"l2_read"};
        case Level::l1: return {"l1_read"};
    }
    return {};
}

Names matrix_names(Precision precision, bool cpu) {
    switch (precision) {
        case Precision::fp16: return cpu ? Names{"avx512_fp16", "neon_fp16"} : Names{"fp16_tensor"};
        case Precision::bf16: return cpu ? Names{"amx_bf16", "avx512_bf16", "neon_bf16"} : Names{"bf16_tensor"};
        case Precision::tf32: return cpu ? Names{} : Names{"tf32_tensor"};
        case Precision::fp32: return cpu ? Names{"avx512_fp32", "avx2_fp32", "neon_fp32"} : Names{"fp32_plain"};
        case Precision::fp64:
            return cpu ? Names{"avx512_fp64", "avx2_fp64", "neon_fp64"} : Names{"fp64_tensor", "fp64_plain"};
    }
    return {};
}

/// Softmax, layer norm and the like compute in fp32 whatever is stored.
Names plain_names(Precision precision, bool cpu) {
    if (precision != Precision::fp64) return matrix_names(Precision::fp32, cpu);
    return cpu ? matrix_names(Precision::fp64, true) : Names{"fp64_plain"};
}

/// A datasheet's roofs as ceilings; one bandwidth stands for reads and writes alike.
CeilingRun datasheet_ceilings(const MachineFile& machine) {
    CeilingRun run;
    run.device = machine.name;
    for (const MachineFile::RoofValue& roof : machine.roofs) {
        Ceiling ceiling;
        ceiling.name = roof.ceiling;
        ceiling.value = {roof.value, Origin::estimated, "datasheet of " + machine.name};
        ceiling.low = ceiling.high = roof.value;
        ceiling.clock_mhz = machine.boost_clock_mhz.value_or(0);
        run.ceilings.push_back(std::move(ceiling));
    }
    return run;
}

/// A maker states the rates of tensor cores where there are any.
bool states_tensor_cores(const MachineFile& machine) {
    return std::ranges::any_of(machine.roofs, [](const auto& roof) { return roof.ceiling.ends_with("_tensor"); });
}

Quantity datasheet_value(std::string_view ceiling, const MachineFile& machine) {
    for (const bool cpu : {false, true}) {  // one bandwidth of the memory is stated
        const Names dram = bandwidth_names(Level::dram, cpu);
        if (std::ranges::find(dram, ceiling) != dram.end()) ceiling = dram.front();
    }
    const auto found = std::ranges::find(machine.roofs, ceiling, &MachineFile::RoofValue::ceiling);
    if (found != machine.roofs.end()) return {found->value, Origin::estimated, "datasheet: " + found->source};
    const bool is_left_out = !machine.no_bandwidth.empty() && ceiling == "cpu_dram_read";
    return Quantity::unavailable(is_left_out ? machine.no_bandwidth
                                             : fmt::format("the datasheet of {} states none", machine.name));
}

}  // namespace

std::vector<std::string> cpu_ceilings_of(Precision precision) {
    std::vector<std::string> ceilings;
    for (const Names& names :
         {bandwidth_names(Level::dram, true), matrix_names(precision, true), plain_names(precision, true)})
        for (const std::string_view name : names)
            if (std::ranges::find(ceilings, name) == ceilings.end()) ceilings.emplace_back(name);
    return ceilings;
}

void add_datasheet(CeilingRun& run, const MachineFile* machine) {
    for (Ceiling& ceiling : run.ceilings)
        ceiling.datasheet = machine != nullptr ? datasheet_value(ceiling.name, *machine)
                                               : Quantity::unavailable("no machine file names this device");
}

Roofs::Roofs(CeilingRun run, std::string_view backend) : run_(std::move(run)), cpu_(backend == "cpu") {
    if (run_.ceilings.empty())
        unavailable_ = !run_.unavailable.empty() ? run_.unavailable : "the result has no ceilings";
}

Roofs::Roofs(const MachineFile& machine) : Roofs(datasheet_ceilings(machine), machine.backend()) {
    origin_ = Origin::estimated;
    tensor_cores_ = cpu_ || states_tensor_cores(machine);
}

Roofs::Roofs(const Result& result) : Roofs(result, result.points.empty() ? "cuda" : result.points.front().backend()) {}

Roofs::Roofs(const Result& result, std::string_view backend) : Roofs(usable_ceilings(result), backend) {
    if (!run_.ceilings.empty()) return;
    if (const MachineFile* known = machine_of(result.environment, backend))
        *this = Roofs(scaled_to(*known, result.environment));
}

Roofs Roofs::during(const Conditions& conditions) const {
    Roofs read = *this;
    if (!cpu_ || origin_ != Origin::measured) return read;
    for (const RoofReadings& readings : conditions.roofs) {
        const auto found = std::ranges::find(read.run_.ceilings, readings.ceiling, &Ceiling::name);
        if (found == read.run_.ceilings.end() || readings.values.size() < fewest_roof_readings) continue;
        const Summary summary = summarise(readings.values);
        if (summary.median <= 0) continue;
        found->value = Quantity::measured(summary.median);
        found->low = summary.p25;
        found->high = summary.max;
    }
    return read;
}

std::optional<Roof> Roofs::best(std::span<const std::string_view> names) const {
    std::optional<Roof> best;
    for (const Ceiling& ceiling : run_.ceilings) {
        if (std::ranges::find(names, ceiling.name) == names.end() || !ceiling.value.value) continue;
        const double unit = per_second(ceiling_kind(ceiling.name).unit), per_s = *ceiling.value.value * unit;
        if (!best || per_s > best->per_s)
            best = Roof{ceiling.name, per_s, ceiling.clock_mhz, origin_, ceiling.low * unit, ceiling.high * unit};
    }
    return best;
}

std::optional<Roof> Roofs::bandwidth(Level level) const { return best(bandwidth_names(level, cpu_)); }
std::optional<Roof> Roofs::matrix(Precision precision) const {
    if (!tensor_cores_ && precision == Precision::fp16) return roof("fp16_plain");
    return best(matrix_names(precision, cpu_));
}
std::optional<Roof> Roofs::matrix_by_mma_sync(Precision precision) const {
    const std::optional<Roof> fastest = matrix(precision);
    if (cpu_ || !fastest) return fastest;
    const std::optional<Roof> own = roof(fmt::format("{}_mma_sync", name(precision)));
    return own ? own : fastest;
}
std::optional<Roof> Roofs::plain(Precision precision) const { return best(plain_names(precision, cpu_)); }

std::optional<Roof> Roofs::roof(std::string_view ceiling) const { return best({&ceiling, 1}); }

double Roofs::highest_clock_mhz() const {
    double highest = 0;
    for (const Ceiling& ceiling : run_.ceilings) highest = std::max(highest, ceiling.clock_mhz);
    return highest;
}

std::optional<double> Roofs::value(std::string_view name) const {
    const auto found = std::ranges::find(run_.ceilings, name, &Ceiling::name);
    return found == run_.ceilings.end() ? std::nullopt : found->value.value;
}
std::optional<double> Roofs::latency_us(std::string_view name) const { return value(name); }

}  // namespace kbench
