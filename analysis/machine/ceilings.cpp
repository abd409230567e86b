// The table of ceilings, and which of them is the roof of what.
#include "analysis/machine/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "analysis/machine/machine.h"

namespace kbench {
namespace {

constexpr CeilingKind kinds[] = {
    {"dram_read", "GB/s", "cuda", "read of buffers far larger than L2"},
    {"dram_write", "GB/s", "cuda", "write of the same"},
    {"dram_copy", "GB/s", "cuda", "copy, bytes read and written"},
    {"dram_triad", "GB/s", "cuda", "a = b + s c, bytes read and written"},
    {"l2_read", "GB/s", "cuda", "read of a buffer that stays in L2, past L1"},
    {"l1_read", "GB/s", "cuda", "global loads that hit L1, all SMs"},
    {"shared_read", "GB/s", "cuda", "loads from shared memory without bank conflicts, all SMs"},
    {"special", "Ginst/s", "cuda", "ex2 by the special-function unit, instructions of a warp"},
    {"load_store", "Ginst/s", "cuda", "shuffles by the load-store unit, instructions of a warp"},
    {"fp16_plain", "TFLOP/s", "cuda", "HFMA2 chains in registers"},
    {"fp32_plain", "TFLOP/s", "cuda", "FFMA chains in registers"},
    {"fp64_plain", "TFLOP/s", "cuda", "DFMA chains in registers"},
    {"fp16_tensor", "TFLOP/s", "cuda", "tensor cores, fp16 inputs and fp32 sums"},
    {"bf16_tensor", "TFLOP/s", "cuda", "tensor cores, bf16 inputs and fp32 sums"},
    {"tf32_tensor", "TFLOP/s", "cuda", "tensor cores, tf32 inputs and fp32 sums"},
    {"fp64_tensor", "TFLOP/s", "cuda", "tensor cores, fp64"},
    {"fp16_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where wgmma is faster"},
    {"bf16_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where wgmma is faster"},
    {"tf32_mma_sync", "TFLOP/s", "cuda", "the same by mma.sync alone, where wgmma is faster"},
    {"launch", "us", "cuda", "from start to start of empty kernels on a stream"},
    {"graph_node", "us", "cuda", "from start to start of empty kernels in a CUDA graph"},
    {"grid_barrier", "us", "cuda", "one barrier among one block an SM, by one atomic"},
    {"cpu_dram_read", "GB/s", "cpu", "read of buffers far larger than the caches, all cores"},
    {"cpu_dram_triad", "GB/s", "cpu", "a = b + s c with non-temporal stores, all cores"},
    {"cpu_dram_read_one_core", "GB/s", "cpu", "the read by one core"},
    {"cpu_dram_triad_one_core", "GB/s", "cpu", "the triad by one core"},
    {"avx2_fp32", "TFLOP/s", "cpu", "FMA chains in registers, AVX2, all cores"},
    {"avx2_fp64", "TFLOP/s", "cpu", "the same in fp64"},
    {"avx512_fp32", "TFLOP/s", "cpu", "FMA chains in registers, AVX-512, all cores"},
    {"avx512_fp64", "TFLOP/s", "cpu", "the same in fp64"},
    {"avx512_fp16", "TFLOP/s", "cpu", "FMA chains in registers, AVX512_FP16, all cores"},
    {"avx512_bf16", "TFLOP/s", "cpu", "dot products of bf16 pairs in registers, AVX512_BF16, all cores"},
    {"amx_bf16", "TFLOP/s", "cpu", "products of tiles, AMX, bf16 inputs and fp32 sums, all cores"},
    {"avx2_fp32_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx2_fp64_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp32_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp64_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_fp16_one_core", "TFLOP/s", "cpu", "one core"},
    {"avx512_bf16_one_core", "TFLOP/s", "cpu", "one core"},
    {"amx_bf16_one_core", "TFLOP/s", "cpu", "one core"},
};

using Names = std::vector<std::string_view>;

/// What a datasheet states stands under this name.
constexpr std::string_view cpu_bandwidth = "cpu_dram_read";

double per_second(std::string_view unit) { return unit == "TFLOP/s" ? 1e12 : 1e9; }

Names bandwidth_names(Level level, bool cpu) {
    if (cpu) return level == Level::dram ? Names{cpu_bandwidth, "cpu_dram_triad"} : Names{};
    switch (level) {
        case Level::dram: return {"dram_read", "dram_write", "dram_copy", "dram_triad"};
        case Level::l2: return {"l2_read"};
        case Level::l1: return {"l1_read"};
    }
    return {};
}

Names matrix_names(Precision precision, bool cpu) {
    switch (precision) {
        case Precision::fp16: return cpu ? Names{"avx512_fp16"} : Names{"fp16_tensor"};
        case Precision::bf16: return cpu ? Names{"amx_bf16", "avx512_bf16"} : Names{"bf16_tensor"};
        case Precision::tf32: return cpu ? Names{} : Names{"tf32_tensor"};
        case Precision::fp32: return cpu ? Names{"avx512_fp32", "avx2_fp32"} : Names{"fp32_plain"};
        case Precision::fp64: return cpu ? Names{"avx512_fp64", "avx2_fp64"} : Names{"fp64_tensor", "fp64_plain"};
    }
    return {};
}

Names mma_sync_names(Precision precision) {
    switch (precision) {
        case Precision::fp16: return {"fp16_mma_sync"};
        case Precision::bf16: return {"bf16_mma_sync"};
        case Precision::tf32: return {"tf32_mma_sync"};
        default: return {};
    }
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

/// Which of a datasheet's roofs a ceiling is set beside.
std::string_view datasheet_roof(std::string_view ceiling) {
    for (const bool cpu : {false, true}) {
        const Names dram = bandwidth_names(Level::dram, cpu);
        if (std::ranges::find(dram, ceiling) != dram.end()) return dram.front();
    }
    return ceiling;
}

Quantity datasheet_value(std::string_view ceiling, const MachineFile& machine) {
    const auto found = std::ranges::find(machine.roofs, datasheet_roof(ceiling), &MachineFile::RoofValue::ceiling);
    const bool is_left_out = !machine.no_bandwidth.empty() && datasheet_roof(ceiling) == cpu_bandwidth;
    if (found == machine.roofs.end() && is_left_out) return Quantity::unavailable(machine.no_bandwidth);
    if (found == machine.roofs.end())
        return Quantity::unavailable(fmt::format("the datasheet of {} states none", machine.name));
    return {found->value, Origin::estimated, "datasheet: " + found->source};
}

}  // namespace

void add_datasheet(CeilingRun& run, const MachineFile* machine) {
    for (Ceiling& ceiling : run.ceilings)
        ceiling.datasheet = machine != nullptr ? datasheet_value(ceiling.name, *machine)
                                               : Quantity::unavailable("no machine file names this device");
}

std::span<const CeilingKind> ceiling_kinds() { return kinds; }

const CeilingKind& ceiling_kind(std::string_view name) {
    const auto* found = std::ranges::find(kinds, name, &CeilingKind::name);
    if (found == std::end(kinds)) throw std::out_of_range(fmt::format("no ceiling is called {}", name));
    return *found;
}

Roofs::Roofs(CeilingRun run, std::string_view backend) : run_(std::move(run)), cpu_(backend == "cpu") {
    if (run_.ceilings.empty())
        unavailable_ = !run_.unavailable.empty() ? run_.unavailable : "the result has no ceilings";
}

Roofs::Roofs(const MachineFile& machine) : Roofs(datasheet_ceilings(machine), machine.backend()) {
    origin_ = Origin::estimated;
}

Roofs::Roofs(const Result& result)
    : Roofs(result.ceilings, result.points.empty() ? "cuda" : result.points.front().backend()) {
    if (!run_.ceilings.empty()) return;
    if (const MachineFile* known = machine_of(result.environment, backend()))
        *this = Roofs(scaled_to(*known, result.environment));
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
std::optional<Roof> Roofs::matrix(Precision precision) const { return best(matrix_names(precision, cpu_)); }
std::optional<Roof> Roofs::matrix_by_mma_sync(Precision precision) const {
    const std::optional<Roof> own = cpu_ ? std::nullopt : best(mma_sync_names(precision));
    return own ? own : matrix(precision);
}
std::optional<Roof> Roofs::plain(Precision precision) const { return best(plain_names(precision, cpu_)); }

std::optional<Roof> Roofs::roof(std::string_view ceiling) const { return best({&ceiling, 1}); }

std::optional<double> Roofs::value(std::string_view name) const {
    const auto found = std::ranges::find(run_.ceilings, name, &Ceiling::name);
    return found == run_.ceilings.end() ? std::nullopt : found->value.value;
}
std::optional<double> Roofs::latency_us(std::string_view name) const { return value(name); }

}  // namespace kbench
