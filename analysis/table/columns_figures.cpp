// Columns of figures: times, launches and occupancy, executed FLOPs, memory traffic and other counters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "analysis/explain/breakdown.h"
#include "analysis/machine/isa.h"
#include "analysis/table/columns_builders.h"

namespace kbench::column {
namespace {

/// Time that the step's FLOPs take at the ceiling of its instruction set in its precision.
std::optional<double> isa_peak_us(const StepResult& step, const CeilingRun& run) {
    const std::string_view name = isa_ceiling(instruction_set(step.implementation), step.precision);
    const auto found = std::ranges::find(run.ceilings, name, &Ceiling::name);
    if (found == run.ceilings.end() || !found->value.value || *found->value.value <= 0) return std::nullopt;
    return step.cost.flops / *found->value.value * 1e-6;
}

std::optional<double> isa_peak_pct(const TableRow& row) {
    if (row.result == nullptr || row.point->backend() != "cpu") return std::nullopt;
    const std::optional<double> peak_us =
        sum(row, [&row](const StepResult& step) { return isa_peak_us(step, row.result->ceilings); });
    const std::optional<double> time = sum(row, device_us);
    if (!peak_us || !time || *time <= 0) return std::nullopt;
    return 100 * *peak_us / *time;
}

void add_time_columns(std::vector<Column>& list) {
    list.push_back(figure(
        "time_us", "time us", "us",
        "time on the device: the kernels' recorded times with the gaps between them, without records the step run's median; summed in a group",
        3, time_us));
    list.push_back(statistic("event_us", "event us",
                             "median between events around the step in the step run; na for several steps",
                             &Summary::median));
    list.push_back(
        statistic("event_min_us", "event min us", "its shortest sample; na for several steps", &Summary::min));
    list.push_back(
        statistic("event_p25_us", "event p25 us", "its 25th percentile; na for several steps", &Summary::p25));
    list.push_back(
        statistic("event_p75_us", "event p75 us", "its 75th percentile; na for several steps", &Summary::p75));
    list.push_back(statistic(
        "event_low_us", "event CI low us",
        "lower end of its 95 % interval, the least sample where fewer than ten are independent; na for several steps",
        &Summary::ci_low));
    list.push_back(statistic("event_high_us", "event CI high us",
                             "its upper end, else the largest sample; na for several steps", &Summary::ci_high));
    list.push_back(
        of_row("n", Align::right, "samples of the step run; of a kernel, recorded forwards", [](const TableRow& row) {
            if (row.kernel != nullptr)
                return row.point->activity.runs > 0 ? Value(std::int64_t{row.point->activity.runs})
                                                    : Value(NoValue::na);
            return shared(row, [](const PlacedStep& placed) {
                const std::optional<Summary>& time_us = placed.step->time_us;
                return time_us ? Value(static_cast<std::int64_t>(time_us->n)) : Value(NoValue::na);
            });
        }));
    list.push_back(figure("share", "share %", "%",
                          "share of the time of all steps of the point; of a kernel, of all its kernels' time", 2,
                          [](const TableRow& row) -> std::optional<double> {
                              if (row.steps.empty() || !row.point_time_us || *row.point_time_us <= 0)
                                  return std::nullopt;
                              return 100 * *time_us(row) / *row.point_time_us;
                          }));
    list.push_back(figure("dependent_us", "dependent us", "us", "time_us over dependent_steps; na for others", 3,
                          [](const TableRow& row) -> std::optional<double> {
                              const auto steps = sum(row, [](const StepResult& step) -> std::optional<double> {
                                  if (!step.dependent_steps) return std::nullopt;
                                  return static_cast<double>(*step.dependent_steps);
                              });
                              const std::optional<double> us = sum(row, device_us);
                              return row.kernel == nullptr && steps && us ? std::optional(*us / *steps) : std::nullopt;
                          }));
    list.push_back(rate("tflop_per_s", "TFLOP/s", "TFLOP/s", "flops over the steps' median time", 3, 1e-6, flops_of));
    list.push_back(figure(
        "isa_peak_pct", "ISA peak %", "%",
        "tflop_per_s over the measured ceiling of the step's instruction set and precision, all cores; na without one, and on a GPU",
        1, isa_peak_pct));
    list.push_back(rate("gb_per_s", "GB/s", "GB/s",
                        "bytes over the steps' median time; may pass the DRAM's speed where caches serve", 1, 1e-3,
                        bytes_of));
}

/// A whole number of a kernel's launch.
struct LaunchColumn {
    const char *name, *unit, *what;
    std::int64_t (*value)(const KernelResult& kernel);
};
constexpr LaunchColumn launch_columns[] = {
    {"regs", "", "registers a thread", [](const KernelResult& kernel) { return std::int64_t{kernel.registers}; }},
    {"smem_static", "B", "static shared memory a block",
     [](const KernelResult& kernel) { return kernel.static_shared_bytes; }},
    {"smem_dynamic", "B", "dynamic shared memory a block",
     [](const KernelResult& kernel) { return kernel.dynamic_shared_bytes; }},
    {"local_bytes", "B", "local memory a thread", [](const KernelResult& kernel) { return kernel.local_bytes; }},
    {"cluster", "", "blocks of a cluster; 1 without clusters",
     [](const KernelResult& kernel) { return std::int64_t{kernel.cluster_blocks}; }},
};

/// A figure that the kernels' launches give, weighted by their recorded time.
Column kernel_mean(std::string column, std::string header, std::string what, Quantity KernelResult::*member) {
    return figure(std::move(column), std::move(header), "%", std::move(what), 1, [member](const TableRow& row) {
        std::vector<Weighted> parts;
        for (const KernelResult* kernel : kernels_of(row)) parts.push_back({(kernel->*member).value, kernel->time_us});
        return weighted_mean(parts);
    });
}

void add_kernel_columns(std::vector<Column>& list) {
    list.push_back(of_row("kernels", Align::right, "number of kernels in the row", [](const TableRow& row) {
        return is_recorded(row) ? Value(count(kernels_of(row).size())) : Value(NoValue::na);
    }));
    list.push_back(
        of_row("kernel_full", Align::left, "kernel, demangled, with all its parameters", [](const TableRow& row) {
            return shared_kernel_names(row, &KernelResult::name, [](const StepResult&) { return std::string(); });
        }));
    list.push_back(
        figure("kernel_us", "kernel us", "us",
               "sum of the kernels' recorded times, medians over the activity runs; longer than without records", 3,
               [](const TableRow& row) { return kernel_sum(row, &KernelResult::time_us); }));
    list.push_back(figure("gap_us", "gap us", "us", "idle time between each kernel and the one before it, summed", 3,
                          [](const TableRow& row) { return kernel_sum(row, &KernelResult::gap_us); }));
    for (const LaunchColumn& launch : launch_columns) {
        list.push_back(of_kernels(launch.name, Align::right, launch.what, launch.value));
        list.back().unit = launch.unit;
    }
    const std::string by_kernel_time = "; for several kernels weighted by their recorded time";
    list.push_back(
        kernel_mean("occ_theory", "occ theory %",
                    "theoretical occupancy: warps an SM can hold of the launch, of the most it has" + by_kernel_time,
                    &KernelResult::theoretical_occupancy_pct));
    list.push_back(counter_mean("occ_achieved", "occ achieved %", "%",
                                fmt::format("achieved occupancy: counter achieved_occupancy{}", by_time), 1,
                                counter_of(&Counters::achieved_occupancy)));
    list.push_back(of_kernels(
        "occ_limiter", Align::left, "what keeps more blocks from an SM, joined by ,",
        [](const KernelResult& kernel) { return text_or_na(fmt::format("{}", fmt::join(kernel.limiters, ","))); }));
    list.push_back(of_kernels("waves", Align::right, "blocks of the grid over those that the device holds at once",
                              [](const KernelResult& kernel) { return figure_or_na(kernel.waves.value); }));
    list.back().decimals = 2;
    list.push_back(kernel_mean("lost_last_wave", "lost wave %",
                               "places for blocks left idle in the last wave, of those of all waves" + by_kernel_time,
                               &KernelResult::lost_in_last_wave_pct));
    list.push_back(of_kernels("occ_hint", Align::left, "the nearest changes of the launch that raise its occupancy",
                              [](const KernelResult& kernel) { return text_or_na(kernel.occupancy_hint); }));
}

struct ExecutedColumn {
    Precision precision;
    const char* what;
};
constexpr ExecutedColumn executed_columns[] = {
    {Precision::fp16, "executed by tensor cores on fp16 inputs"},
    {Precision::bf16, "executed by tensor cores on bf16 inputs"},
    {Precision::tf32, "executed by tensor cores on tf32 inputs"},
    {Precision::fp64, "executed in fp64, by tensor and plain cores"},
    {Precision::fp32, "executed in fp32, by plain cores"},
};

/// nvprof's names for FLOPs on plain cores.
struct PlainFlops {
    const char* name;
    Precision precision;
    const char* what;
};
constexpr PlainFlops plain_flops_columns[] = {
    {"flop_count_sp", Precision::fp32, "fp32 FLOPs on plain cores, an FMA is 2 (nvprof)"},
    {"flop_count_dp", Precision::fp64, "fp64 FLOPs on plain cores, an FMA is 2 (nvprof)"},
    {"flop_count_hp", Precision::fp16, "fp16 and bf16 FLOPs on plain cores, of packed pairs, an FMA is 4 (nvprof)"},
};

std::optional<double> dram_bytes_of(const StepResult& step) { return dram_traffic(counters_of(step)); }

void add_executed_columns(std::vector<Column>& list) {
    const auto all = [](const StepResult& step) { return executed_flops(counters_of(step)); };
    list.push_back(
        counted(amount("executed_flops", "FLOP", "executed by tensor and plain cores, by counters; an FMA is 2", all)));
    for (const ExecutedColumn& row : executed_columns)
        list.push_back(counted(amount(fmt::format("executed_{}", name(row.precision)), "FLOP", row.what,
                                      [precision = row.precision](const StepResult& step) {
                                          return executed_flops(counters_of(step), precision);
                                      })));
    list.push_back(counted(
        ratio("executed_over_model", "executed/model", "",
              "executed_flops over flops with padding_flops, less spared_flops", 3, 1, all, [](const StepResult& step) {
                  return std::optional(step.cost.flops + step.padding_flops - step.spared_flops.value_or(0));
              })));
    list.push_back(amount("matrix_flops", "FLOP", "FLOPs of matrix products as launched, 2 m n k with padding",
                          [](const StepResult& step) { return step.matrix_flops; }));
    list.push_back(counted(text(
        "mismatch",
        "what the counters found executed where it is not the precision asked for; na where they found nothing or were not read",
        [](const StepResult& step) { return executed_mismatch(step).value_or(""); })));
    for (const PlainFlops& row : plain_flops_columns)
        list.push_back(counted(amount(row.name, "FLOP", row.what, [precision = row.precision](const StepResult& step) {
            return plain_flops(counters_of(step), precision);
        })));
    list.push_back(counted(amount("cf_executed", "inst", "warp instructions of control flow (nvprof)",
                                  counter_of(&Counters::cf_executed))));
}

void add_memory_columns(std::vector<Column>& list) {
    list.push_back(counted(
        amount("dram_bytes", "B",
               "read from and written to DRAM while it ran, by counters; what is written may be of steps before it",
               dram_bytes_of)));
    list.push_back(counted(ratio("dram_over_streaming", "DRAM/streaming", "",
                                 "dram_bytes over bytes; below 1 where caches held what a step before it left", 3, 1,
                                 dram_bytes_of, bytes_of)));
    list.push_back(counted(ratio("l2_over_streaming", "L2/streaming", "", "counter l2_bytes over bytes", 3, 1,
                                 counter_of(&Counters::l2_bytes), bytes_of)));
    list.push_back(counted(
        rate("dram_gb_per_s", "DRAM GB/s", "GB/s", "dram_bytes over the steps' median time", 1, 1e-3, dram_bytes_of)));
    for (const auto& [direction, counter] :
         {std::pair{"read", &Counters::dram_read_bytes}, std::pair{"write", &Counters::dram_write_bytes}})
        list.push_back(
            counted(rate(fmt::format("dram_{}_throughput", direction), fmt::format("DRAM {} GB/s", direction), "GB/s",
                         fmt::format("DRAM {} bytes over the steps' median time (nvprof)", direction), 1, 1e-3,
                         counter_of(counter))));
}

/// A counter under the names of those who know it.
struct CounterColumn {
    const char* name;
    CounterOf counter;
    const char *header, *unit, *what;
    int decimals;
};
constexpr CounterColumn counter_columns[] = {
    {"achieved_occupancy", &Counters::achieved_occupancy, "achieved_occupancy %", "%", "nvprof's name of occ_achieved",
     1},
    {"ipc", &Counters::ipc, "ipc", "inst/cycle", "warp instructions per active cycle of an SM (nvprof)", 2},
};

std::optional<double> sm_active(const TableRow& row) {
    const double clock_mhz = row.point == nullptr ? 0 : row.point->conditions.sm_clock_mhz.value.value_or(0);
    return step_mean(row, [clock_mhz](const StepResult& step) { return sm_active_pct(step, clock_mhz); });
}

void add_counter_columns(std::vector<Column>& list) {
    list.push_back(counted(figure(
        "sm_active", "SM active %", "%",
        fmt::format(
            "share of the kernels' time in which an SM had a warp: counted cycles at the clock of the timing run{}",
            by_time),
        1, sm_active)));
    list.push_back(counted(figure("sm_efficiency", "sm_efficiency %", "%",
                                  fmt::format("nvprof's name of sm_active{}", by_time), 1, sm_active)));
    for (const CounterColumn& row : counter_columns)
        list.push_back(counter_mean(row.name, row.header, row.unit, fmt::format("{}{}", row.what, by_time),
                                    row.decimals, counter_of(row.counter)));
}

}  // namespace

void add_figures(std::vector<Column>& list) {
    add_time_columns(list);
    add_kernel_columns(list);
    add_executed_columns(list);
    add_memory_columns(list);
    add_counter_columns(list);
}

}  // namespace kbench::column
