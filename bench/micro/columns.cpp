// The table of columns.
#include "bench/micro/columns.h"

namespace kbench {
namespace {

constexpr MicroColumn table[] = {
    {"ci%", "%", "half the width of the median's 95 % interval over the median",
     [](const MicroFigures& f) -> std::optional<double> {
         if (!f.relative_ci) return std::nullopt;
         return 100 * *f.relative_ci;
     }},
    {"GB/s", "10^9 B/s", "unfused traffic of the cost model over the median time",
     [](const MicroFigures& f) -> std::optional<double> { return f.gb_per_s; }},
    {"TFLOP/s", "10^12/s", "FLOPs of the cost model over the median time; the console says GFLOP/s below 1",
     [](const MicroFigures& f) -> std::optional<double> { return f.tflop_per_s; }},
    {"roof%", "%", "share of the longest roof, which the label names",
     [](const MicroFigures& f) -> std::optional<double> {
         if (!f.roof_share) return std::nullopt;
         return 100 * *f.roof_share;
     }},
    {"MHz", "10^6/s",
     "clock of a GPU's SMs or the CPU's cores while timing, mean of the samples: below the maximum where power or temperature limit it",
     [](const MicroFigures& f) { return f.clock_mhz; }, MicroColumn::Needs::clock},
    {"occupancy%", "%", "achieved occupancy, counted", [](const MicroFigures& f) { return f.achieved_occupancy_pct; },
     MicroColumn::Needs::gpu_counters},
    {"DRAM_MB", "10^6 B", "bytes to and from DRAM in one run, counted",
     [](const MicroFigures& f) -> std::optional<double> {
         if (!f.dram_bytes) return std::nullopt;
         return *f.dram_bytes * 1e-6;
     },
     MicroColumn::Needs::gpu_counters},
    {"GFLOP", "10^9",
     "FLOPs executed in one run, counted: of all units, or of the precision asked for where only those were counted",
     [](const MicroFigures& f) -> std::optional<double> {
         if (!f.executed_flops) return std::nullopt;
         return *f.executed_flops * 1e-9;
     },
     MicroColumn::Needs::gpu_counters},
};

}  // namespace

std::span<const MicroColumn> micro_columns() { return table; }

std::vector<std::string> micro_column_names(bool has_gpu_counters, bool has_clock) {
    std::vector<std::string> names;
    for (const MicroColumn& column : table) {
        if (column.needs == MicroColumn::Needs::gpu_counters && !has_gpu_counters) continue;
        if (column.needs == MicroColumn::Needs::clock && !has_clock) continue;
        names.emplace_back(column.name);
    }
    return names;
}

}  // namespace kbench
