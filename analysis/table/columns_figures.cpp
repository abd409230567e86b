// Columns of figures: times, launches and occupancy, executed FLOPs, memory traffic and other counters.

#include <algorithm>

#include "analysis/explain/executed.h"
#include "analysis/facts/point_facts.h"
#include "analysis/machine/isa.h"
#include "analysis/table/columns_builders.h"
#include "models/base/lists.h"

namespace kbench::column {
namespace {

/// Time that the step's FLOPs take at the ceiling of its instruction set in its precision.
std::optional<double> isa_peak_us(Step step, const CeilingRun& run) {
    const std::string_view name = isa_ceiling(instruction_set(step.implementation), step.precision);
    const auto found = std::ranges::find(run.ceilings, name, &Ceiling::name);
    if (found == run.ceilings.end() || !found->value.value || *found->value.value <= 0) return std::nullopt;
    return step.cost.flops / *found->value.value * 1e-6;
}

std::optional<double> isa_peak_pct(Row row) {
    if (row.result == nullptr || row.point->backend() != "cpu") return std::nullopt;
    const auto peak_us = [&](Step step) { return isa_peak_us(step, row.result->ceilings); };
    const std::optional<double> peak = sum(row, peak_us), time = sum(row, device_us);
    return peak && time && *time > 0 ? std::optional(100 * *peak / *time) : std::nullopt;
}

Value samples_of(Row row) {
    if (row.kernel != nullptr) {
        const int runs = row.point->activity.runs;
        return cell(runs > 0 ? std::optional(runs) : std::nullopt);
    }
    return of_steps([](Step step) { return step.time_us ? std::optional(step.time_us->n) : std::nullopt; })(row);
}

std::optional<double> share_pct(Row row) {
    if (row.steps.empty() || !row.point_time_us || *row.point_time_us <= 0) return std::nullopt;
    return 100 * *time_us(row) / *row.point_time_us;
}

std::optional<double> time_step_us(Row row) {
    return row.kernel == nullptr ? ratio(device_us, &StepResult::time_steps)(row) : std::nullopt;
}

/// An order statistic of a step's samples. Those of several steps do not add up, so a group of several has none;
/// they are not a kernel's either.
auto sample(double Summary::*member) {
    return [member](Row row) -> std::optional<double> {
        if (row.kernel != nullptr || row.steps.size() != 1) return std::nullopt;
        const std::optional<Summary>& samples = row.steps[0].step->time_us;
        return samples ? std::optional((*samples).*member) : std::nullopt;
    };
}

/// Sum over the row's kernels; nothing when they are not known.
auto kernel_sum(double KernelResult::*member) {
    return [member](Row row) -> std::optional<double> {
        if (!is_recorded(row)) return std::nullopt;
        double total = 0;
        for (const KernelResult* kernel : kernels_of(row)) total += kernel->*member;
        return total;
    };
}

/// A figure that the kernels' launches give, weighted by their recorded time.
auto kernel_mean(Quantity KernelResult::*member) {
    return [member](Row row) {
        std::vector<Weighted> parts;
        for (const KernelResult* kernel : launched_kernels_of(row))
            parts.push_back({(kernel->*member).value, kernel->time_us});
        return weighted_mean(parts);
    };
}

/// Nothing where the launch call of any kernel is not known.
std::optional<double> host_wait(Row row) {
    const std::vector<const KernelResult*> kernels = kernels_of(row);
    if (kernels.empty()) return std::nullopt;
    double total = 0;
    for (const KernelResult* kernel : kernels) {
        if (!kernel->host_wait_us) return std::nullopt;
        total += *kernel->host_wait_us;
    }
    return total;
}

std::optional<std::int64_t> moved(Row row) {
    std::optional<std::int64_t> total;
    for (const KernelResult* kernel : kernels_of(row))
        if (kernel->moved_bytes) total = total.value_or(0) + *kernel->moved_bytes;
    return total;
}

std::optional<std::size_t> kernel_count(Row row) {
    return is_recorded(row) ? std::optional(kernels_of(row).size()) : std::nullopt;
}

std::optional<double> all_executed(Step step) { return executed_flops(counters_of(step)); }
double flops_to_execute(Step step) { return step.cost.flops + step.padding_flops - step.spared_flops.value_or(0); }

template <Precision precision>
Value executed(Row row) {
    return counted(total([](Step step) { return executed_flops(counters_of(step), precision); }))(row);
}
template <Precision precision>
Value plain(Row row) {
    return counted(total([](Step step) { return plain_flops(counters_of(step), precision); }))(row);
}

std::optional<double> dram_bytes_of(Step step) { return dram_traffic(counters_of(step)); }

Value sm_active(Row row) {
    PointFacts run;
    std::vector<Interval> clocks;
    if (row.point != nullptr) {
        run.clock_mhz.value = row.point->conditions.sm_clock_mhz.value.value_or(0);
        clocks = graph_clocks(*row.point);
    }
    const auto active = [&](Step step) {
        const auto at = static_cast<std::size_t>(&step - (row.point != nullptr ? row.point->steps.data() : &step));
        return make_step_facts(step, run, clocks.empty() ? Interval{} : clocks[at]).active_pct();
    };
    return counted(mean(active))(row);
}

}  // namespace

Entries time_columns() {
    return {
        {"time_us", "time us", "us", 3, time_us,
         "time on the device: the kernels' recorded times with the gaps between them, without records the step run's median; summed in a group"},
        {"event_us", "event us", "us", 3, sample(&Summary::median),
         "median between events around the step in the step run; na for several steps"},
        {"event_min_us", "event min us", "us", 3, sample(&Summary::min), "its shortest sample; na for several steps"},
        {"event_p25_us", "event p25 us", "us", 3, sample(&Summary::p25), "its 25th percentile; na for several steps"},
        {"event_p75_us", "event p75 us", "us", 3, sample(&Summary::p75), "its 75th percentile; na for several steps"},
        {"event_low_us", "event CI low us", "us", 3, sample(&Summary::ci_low),
         "lower end of its 95 % interval, the least sample where too few are independent; na for several steps"},
        {"event_high_us", "event CI high us", "us", 3, sample(&Summary::ci_high),
         "its upper end, else the largest sample; na for several steps"},
        {"n", "", "", 0, samples_of, "samples of the step run; of a kernel, recorded forwards"},
        {"share", "share %", "%", 2, share_pct,
         "share of the time of all steps of the point; of a kernel, of all its kernels' time"},
        {"time_step_us", "time step us", "us", 3, time_step_us, "time_us over time_steps; na for others"},
        {"tflop_per_s", "TFLOP/s", "TFLOP/s", 3, ratio(flops_of, device_us, 1e-6), "flops over the steps' median time"},
        {"isa_peak_pct", "ISA peak %", "%", 1, isa_peak_pct,
         "tflop_per_s over the measured ceiling of the step's instruction set and precision, all cores; na without one, and on a GPU"},
        {"gb_per_s", "GB/s", "GB/s", 1, ratio(bytes_of, device_us, 1e-3),
         "bytes over the steps' median time; may pass the DRAM's speed where caches serve"},
    };
}

Entries kernel_columns() {
    return {
        {"kernels", "", "", 0, kernel_count, "number of kernels in the row"},
        {"kernel_full", "", "", as_text, kernel_names(&KernelResult::name),
         "kernel, demangled, with all its parameters"},
        {"kernel_us", "kernel us", "us", 3, kernel_sum(&KernelResult::time_us),
         "sum of the kernels' recorded times, medians over the activity runs; longer than without records"},
        {"gap_us", "gap us", "us", 3, kernel_sum(&KernelResult::gap_us),
         "idle time between each kernel and the one before it, summed"},
        {"host_wait_us", "host wait us", "us", 3, host_wait,
         "the part of gap_us before work that was launched only meanwhile, summed; na where launch calls were not recorded"},
        {"moved_bytes", "moved", "B", 0, moved, "bytes that copies and fills of a program wrote; na for kernels"},
        {"regs", "", "", 0, of_launches(&KernelResult::registers), "registers a thread"},
        {"smem_static", "", "B", 0, of_launches(&KernelResult::static_shared_bytes), "static shared memory a block"},
        {"smem_dynamic", "", "B", 0, of_launches(&KernelResult::dynamic_shared_bytes), "dynamic shared memory a block"},
        {"local_bytes", "", "B", 0, of_launches(&KernelResult::local_bytes), "local memory a thread"},
        {"cluster", "", "", 0, of_launches(&KernelResult::cluster_blocks), "blocks of a cluster; 1 without clusters"},
        {"occ_theory", "occ theory %", "%", 1, kernel_mean(&KernelResult::theoretical_occupancy_pct),
         "theoretical occupancy: warps an SM can hold of the launch, of the most it has; for several kernels weighted by their recorded time"},
        {"occ_achieved", "occ achieved %", "%", 1, counted(mean(counter_of(&Counters::achieved_occupancy))),
         "achieved occupancy: counter achieved_occupancy; in a group weighted by time"},
        {"occ_limiter", "", "", as_text, of_launches([](Kernel kernel) { return joined(kernel.limiters, ","); }),
         "what keeps more blocks from an SM, joined by ,"},
        {"waves", "", "", 2, of_launches([](Kernel kernel) { return kernel.waves.value; }),
         "blocks of the grid over those that the device holds at once"},
        {"lost_last_wave", "lost wave %", "%", 1, kernel_mean(&KernelResult::lost_in_last_wave_pct),
         "places for blocks left idle in the last wave, of those of all waves; for several kernels weighted by their recorded time"},
        {"occ_hint", "", "", as_text, of_launches(&KernelResult::occupancy_hint),
         "the nearest changes of the launch that raise its occupancy"},
    };
}

Entries executed_columns() {
    return {
        {"executed_flops", "", "FLOP", 0, counted(total(all_executed)),
         "executed by tensor and plain cores, by counters; an FMA is 2"},
        {"executed_fp16", "", "FLOP", 0, executed<Precision::fp16>, "executed by tensor cores on fp16 inputs"},
        {"executed_bf16", "", "FLOP", 0, executed<Precision::bf16>, "executed by tensor cores on bf16 inputs"},
        {"executed_tf32", "", "FLOP", 0, executed<Precision::tf32>, "executed by tensor cores on tf32 inputs"},
        {"executed_fp64", "", "FLOP", 0, executed<Precision::fp64>, "executed in fp64, by tensor and plain cores"},
        {"executed_fp32", "", "FLOP", 0, executed<Precision::fp32>, "executed in fp32, by plain cores"},
        {"executed_over_model", "executed/model", "", 3, counted(ratio(all_executed, flops_to_execute)),
         "executed_flops over flops with padding_flops, less spared_flops"},
        {"matrix_flops", "", "FLOP", 0, total(&StepResult::matrix_flops),
         "FLOPs of matrix products as launched, 2 m n k with padding"},
        {"mismatch", "", "", as_text, counted(of_steps(executed_mismatch)),
         "what the counters found executed where it is not the precision asked for; na where they found nothing or were not read"},
        {"flop_count_sp", "", "FLOP", 0, plain<Precision::fp32>, "fp32 FLOPs on plain cores, an FMA is 2 (nvprof)"},
        {"flop_count_dp", "", "FLOP", 0, plain<Precision::fp64>, "fp64 FLOPs on plain cores, an FMA is 2 (nvprof)"},
        {"flop_count_hp", "", "FLOP", 0, plain<Precision::fp16>,
         "fp16 and bf16 FLOPs on plain cores, of packed pairs, an FMA is 4 (nvprof)"},
        {"cf_executed", "", "inst", 0, counted(total(counter_of(&Counters::cf_executed))),
         "warp instructions of control flow (nvprof)"},
    };
}

Entries memory_columns() {
    return {
        {"dram_bytes", "", "B", 0, counted(total(dram_bytes_of)),
         "read from and written to DRAM while it ran, by counters; what is written may be of steps before it"},
        {"dram_over_unfused", "DRAM/unfused", "", 3, counted(ratio(dram_bytes_of, bytes_of)),
         "dram_bytes over bytes; below 1 where caches held what a step before it left"},
        {"l2_over_unfused", "L2/unfused", "", 3, counted(ratio(counter_of(&Counters::l2_bytes), bytes_of)),
         "counter l2_bytes over bytes"},
        {"dram_gb_per_s", "DRAM GB/s", "GB/s", 1, counted(ratio(dram_bytes_of, device_us, 1e-3)),
         "dram_bytes over the steps' median time"},
        {"dram_read_throughput", "DRAM read GB/s", "GB/s", 1,
         counted(ratio(counter_of(&Counters::dram_read_bytes), device_us, 1e-3)),
         "DRAM read bytes over the steps' median time (nvprof)"},
        {"dram_write_throughput", "DRAM write GB/s", "GB/s", 1,
         counted(ratio(counter_of(&Counters::dram_write_bytes), device_us, 1e-3)),
         "DRAM write bytes over the steps' median time (nvprof)"},
    };
}

Entries counter_columns() {
    return {
        {"sm_active", "SM active %", "%", 1, sm_active,
         "share of the kernels' time in which an SM had a warp: counted cycles at the clock of the timing run; in a group weighted by time"},
        {"sm_efficiency", "sm_efficiency %", "%", 1, sm_active,
         "nvprof's name of sm_active; in a group weighted by time"},
        {"achieved_occupancy", "achieved_occupancy %", "%", 1, counted(mean(counter_of(&Counters::achieved_occupancy))),
         "nvprof's name of occ_achieved; in a group weighted by time"},
        {"ipc", "", "inst/cycle", 2, counted(mean(counter_of(&Counters::ipc))),
         "warp instructions per active cycle of an SM (nvprof); in a group weighted by time"},
    };
}

}  // namespace kbench::column
