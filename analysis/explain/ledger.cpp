// Demand by step as it was run, then the losses above it one after another, each at most what is left, so that every
// step's lines sum to its time.
#include "analysis/explain/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/executed.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

constexpr std::array<LineInfo, line_count> line_infos{{
    {"compute", "FLOPs of the model over the roof of the unit that computes them"},
    {"DRAM", "bytes over DRAM's bandwidth, where that takes longest"},
    {"L2", "bytes over L2's bandwidth, where that takes longest"},
    {"L1", "bytes over L1's bandwidth, where that takes longest"},
    {"extra work", "FLOPs beyond the model's: padding, masks, overhanging tiles"},
    {"clock", "the clock of the run is below that of the roof's measurement (power limit); negative: above it"},
    {"idle SMs", "SMs without a warp: last wave, grids smaller than the device"},
    {"instructions", "issue slots beyond what the roof's own work takes"},
    {"other", "what is left of the time with warps: no counter says what it is"},
    {"rest", "above the demand, not split for lack of counters; negative: the demand exceeds the time"},
    {"launch", "gaps, and starting and ending kernels, up to what an empty kernel takes"},
    {"dependency", "gaps beyond that"},
    {"recording", "what recording adds to kernels and gaps, calibrated"},
    {"drift", "the timing run against the runs beside the recorded ones"},
    {"residual", "not explained"},
}};

constexpr double sector_bytes = 32;

/// Whether tensor cores do most of the step's FLOPs: as its kind says; of kinds that this kbench does not know, as
/// their products do.
bool is_matrix_product(const StepResult& step) {
    const OpKind* kind = find_op_kind(step.op);
    // A result may be of another kbench, or of a user's kind: what is not known here, what it computed with says.
    if (kind == nullptr || !kind->has(step.direction)) return step.matrix_flops > 0;
    return kind->unit(step.direction) == RoofUnit::matrix;
}

Line line_of(const Demand& demand) {
    if (!demand.level) return Line::compute;
    switch (*demand.level) {
        case Level::dram: return Line::dram;
        case Level::l2: return Line::l2;
        case Level::l1: return Line::l1;
    }
    return Line::compute;
}

/// Kernels and the gaps between them, without the gap before the first. Without records the mean over the runs with
/// marks: means add up to the mean of the whole, and medians, where now one step is slow and now another, do not.
double own_time_us(const StepResult& step) {
    if (step.kernels.empty() && step.time_us) return step.time_us->mean;
    return step.device_us().value_or(0);
}

double gap_before_us(const StepResult& step) { return step.kernels.empty() ? 0 : step.kernels.front().gap_us; }

struct Bytes {
    double bytes;
    Origin origin;
};

std::optional<Bytes> bytes_at(const StepResult& step, Level level, Origin dram) {
    const auto counted = [](std::optional<double> value) {
        return value ? std::optional(Bytes{*value, Origin::measured}) : std::nullopt;
    };
    switch (level) {
        case Level::dram: {
            const auto read = counter(step, "dram_read_bytes"), written = counter(step, "dram_write_bytes");
            if (read && written) return Bytes{*read + *written, dram};
            return Bytes{step.cost.bytes(), Origin::derived};
        }
        case Level::l2: {
            const auto sectors = counter(step, "l2_sm_sectors");
            return counted(sectors ? std::optional(*sectors * sector_bytes) : std::nullopt);
        }
        case Level::l1: return counted(counter(step, "l1_bytes"));
    }
    return std::nullopt;
}

/// FLOPs executed less the cost model's, on the unit that `matrix` names: counted where they were, else the padding
/// and the masked work that the plan knows of. Only matrix products run on tensor cores; the rest computes 16-bit data
/// in fp32.
double extra_flops(const StepResult& step, bool matrix) {
    const Precision unit = matrix || step.precision == Precision::fp64 ? step.precision : Precision::fp32;
    const std::optional<double> executed = executed_flops(step, unit);
    return executed && *executed > 0 ? *executed - step.cost.flops : step.padding_flops;
}

/// How much longer a roof's work takes at the run's clock. DRAM has a clock of its own, and L2's is not read.
double slowdown(const Demand& demand, double run_clock_mhz) {
    const bool on_chip = !demand.level || *demand.level == Level::l1;
    return on_chip && demand.roof.clock_mhz > 0 && run_clock_mhz > 0 ? demand.roof.clock_mhz / run_clock_mhz : 1;
}

/// Takes from what is left of a step's time.
class Remainder {
  public:
    explicit Remainder(double us) : us_(std::max(0.0, us)) {}
    double take(double us) {
        const double taken = std::clamp(us, 0.0, us_);
        us_ -= taken;
        return taken;
    }
    double rest() const { return us_; }

  private:
    double us_;
};

/// Books the gaps before the step's kernels, and returns what is left of an empty kernel's time for starting and ending
/// them: an empty kernel's latency is from start to start, and so holds a gap as well.
double split_gaps(StepLedger& entry, const std::optional<double>& graph_node_us) {
    double left_us = 0;
    for (const KernelResult& kernel : entry.step->kernels) {
        const double launch = std::min(kernel.gap_us, graph_node_us.value_or(kernel.gap_us));
        entry.lines[Line::launch] += launch;
        entry.lines[Line::dependency] += kernel.gap_us - launch;
        if (graph_node_us) left_us += *graph_node_us - std::max(0.0, launch);
    }
    return left_us;
}

/// Splits the time of the kernels alone. The demand may exceed it by a measurement's error; the excess then is a
/// negative rest, so that it shows.
void split_kernels(StepLedger& entry, double run_clock_mhz, double start_and_end_us) {
    const StepResult& step = *entry.step;
    Lines& lines = entry.lines;
    const double kernels_us = entry.time_us + gap_before_us(step) - lines.total_us();
    double on_roof_us = 0;
    if (const Demand* binding = entry.binding()) {
        lines[line_of(*binding)] = binding->us;
        lines[Line::clock] = binding->us * (slowdown(*binding, run_clock_mhz) - 1);
        lines[Line::extra_work] = binding->run_us - binding->us - lines[Line::clock];
        on_roof_us = binding->run_us;
    }
    Remainder remainder(kernels_us - on_roof_us);
    const std::optional<double> active = sm_active_us(step, run_clock_mhz), ipc = counter(step, "ipc");
    entry.split = active && ipc;
    if (entry.split) {
        const double idle = std::max(0.0, kernels_us - *active);
        entry.starts_us = std::min(idle, start_and_end_us);
        lines[Line::launch] += remainder.take(entry.starts_us);
        lines[Line::idle_sms] = remainder.take(idle - entry.starts_us);
        lines[Line::instructions] = remainder.take(*active * *ipc / schedulers - on_roof_us);
        lines[Line::other] = remainder.rest();
    } else {
        lines[Line::rest] = remainder.rest();
    }
    lines[Line::rest] += std::min(0.0, kernels_us - on_roof_us);
}

/// What records add to one kernel of this recorded length: between the calibrated lengths in proportion, beyond them as
/// at the nearest. Files before version 3 counted a part of the launch as well; there, what the record itself is
/// longer.
class Inflation {
  public:
    explicit Inflation(const ActivityRun& run) {
        for (const RecordInflation& chain : run.inflation) {
            const double with = run.unprofiled_ms > 0 ? chain.profiled_us : chain.recorded_us;
            by_length_[chain.recorded_us] = with - chain.kernel_us;
        }
    }
    double us(double recorded_us) const {
        if (by_length_.empty()) return 0;
        const auto above = by_length_.lower_bound(recorded_us);
        if (above == by_length_.begin()) return above->second;
        if (above == by_length_.end()) return std::prev(above)->second;
        const auto below = std::prev(above);
        const double share = (recorded_us - below->first) / (above->first - below->first);
        return below->second + share * (above->second - below->second);
    }

  private:
    std::map<double, double> by_length_;
};

double recording_us(const StepResult& step, const Inflation& inflation) {
    double us = 0;
    for (const KernelResult& kernel : step.kernels) us += inflation.us(kernel.time_us);
    return us;
}

template <class NameOf>
std::vector<LedgerGroup> group(const std::vector<StepLedger>& steps, NameOf name_of) {
    std::vector<LedgerGroup> groups;
    for (const StepLedger& entry : steps) {
        const std::string name = name_of(*entry.step);
        auto found = std::ranges::find(groups, name, &LedgerGroup::name);
        if (found == groups.end()) found = groups.insert(groups.end(), LedgerGroup{name, 0, 0, {}});
        ++found->steps;
        found->time_us += entry.time_us;
        found->lines += entry.lines;
    }
    std::ranges::stable_sort(groups, std::greater{}, &LedgerGroup::time_us);
    return groups;
}

/// How a second run of the same step can cost something else than the first.
std::string explain_difference(const MarginalCheck& check) {
    const double percent = (check.marginal_ms / check.ledger_ms - 1) * 100;
    return percent < 0 ? fmt::format(
                             "{:.0f} % less than the ledger's share: the repeated step finds its operands in "
                             "the cache, or overlaps with its neighbours",
                             -percent)
                       : fmt::format(
                             "{:.0f} % more than the ledger's share: the repeated step evicts from the cache "
                             "what the next one reads, or loses an overlap",
                             percent);
}

std::vector<MarginalCheck> check_marginal(const Point& point, const Ledger& ledger, const Inflation& inflation) {
    std::vector<MarginalCheck> checks;
    for (const MarginalCost& cost : point.marginal) {
        MarginalCheck check;
        check.op = cost.op;
        double recording = 0;
        for (const StepLedger& entry : ledger.steps) {
            if (entry.step->op != cost.op) continue;
            check.ledger_ms += (entry.time_us + gap_before_us(*entry.step)) * 1e-3;
            recording += recording_us(*entry.step, inflation) * 1e-3;
        }
        // The correction for records is itself uncertain, and so is what the whole ledger leaves unexplained; drift is
        // that of the machine between the runs, and the marginal cost was measured in yet another.
        const double unexplained = ledger.unexplained_share() * check.ledger_ms;
        check.ledger_low_ms = check.ledger_ms - std::max(0.0, recording) - unexplained;
        check.ledger_high_ms = check.ledger_ms - std::min(0.0, recording) + unexplained;
        check.ledger_ms -= recording;
        check.marginal_ms = cost.difference_ms.summary_ms.median;
        check.marginal_low_ms = cost.difference_ms.summary_ms.ci_low;
        check.marginal_high_ms = cost.difference_ms.summary_ms.ci_high;
        check.agrees = check.marginal_low_ms <= check.ledger_high_ms && check.ledger_low_ms <= check.marginal_high_ms;
        if (!check.agrees && check.ledger_ms > 0) check.finding = explain_difference(check);
        checks.push_back(std::move(check));
    }
    return checks;
}

}  // namespace

Origin dram_origin(const Point& point) {
    const auto metric = std::ranges::find(point.counters.metrics, "dram_read_bytes", &CountedMetric::name);
    return metric != point.counters.metrics.end() ? metric->origin : Origin::measured;
}

std::vector<Demand> demands_of(const StepResult& step, const Roofs& roofs, Origin dram, double run_clock_mhz) {
    std::vector<Demand> demands;
    const auto add = [&](const std::optional<Roof>& roof, std::optional<Level> level, double work, double extra,
                         Origin origin) {
        if (!roof || roof->per_s <= 0) return;
        Demand& demand = demands.emplace_back(Demand{*roof, level, work, work / roof->per_s * 1e6, 0, origin});
        demand.run_us = (work + extra) / roof->per_s * 1e6 * slowdown(demand, run_clock_mhz);
    };
    const bool matrix = is_matrix_product(step);
    if (step.cost.flops > 0)
        add(matrix ? roofs.matrix(step.precision) : roofs.plain(step.precision), {}, step.cost.flops,
            extra_flops(step, matrix), Origin::derived);
    for (const Level level : levels)
        if (const std::optional<Bytes> bytes = bytes_at(step, level, dram))
            if (bytes->bytes > 0 || bytes->origin == Origin::measured)
                add(roofs.bandwidth(level), level, bytes->bytes, 0, bytes->origin);
    std::ranges::stable_sort(demands, std::greater{}, &Demand::run_us);
    return demands;
}

const LineInfo& info(Line line) { return line_infos[static_cast<std::size_t>(line)]; }

double Lines::total_us() const {
    double sum = 0;
    for (const double value : us) sum += value;
    return sum;
}

double Lines::demand_us() const {
    const Lines& lines = *this;
    return lines[Line::compute] + lines[Line::dram] + lines[Line::l2] + lines[Line::l1];
}

Lines& Lines::operator+=(const Lines& other) {
    for (std::size_t i = 0; i < line_count; ++i) us[i] += other.us[i];
    return *this;
}

double StepLedger::roof_share() const { return binding() != nullptr && time_us > 0 ? binding()->us / time_us : 0; }

double Ledger::residual_share() const { return end_to_end_us > 0 ? total[Line::residual] / end_to_end_us : 0; }

double Ledger::unexplained_share() const {
    return end_to_end_us > 0 ? (std::abs(total[Line::drift]) + std::abs(total[Line::residual])) / end_to_end_us : 0;
}

bool Ledger::closes() const { return unavailable.empty() && unexplained_share() <= closing_tolerance; }

double executed_over_useful(const StepResult& step) {
    return step.cost.flops > 0 ? 1 + step.padding_flops / step.cost.flops : 1;
}

std::optional<RoofBreach> worst_breach(const Result& result) {
    const Roofs roofs(result);
    std::optional<RoofBreach> worst;
    for (const Point& point : result.points)
        for (const StepLedger& entry : make_ledger(point, roofs).steps)
            for (const Demand& demand : entry.demands) {
                // Bytes that nobody counted may never have left a cache.
                if (entry.time_us <= 0 || (demand.level && demand.origin != Origin::measured)) continue;
                const double executed = demand.level ? 1 : executed_over_useful(*entry.step);
                const double excess = demand.us * executed / entry.time_us - 1;
                if (excess > std::max(breach_tolerance, worst ? worst->excess : 0))
                    worst = {fmt::format("{} {}", entry.step->index, entry.step->layer), demand.roof.ceiling, excess};
            }
    return worst;
}

Ledger make_ledger(const Point& point, const Roofs& roofs) {
    Ledger ledger;
    if (!point.end_to_end) {
        ledger.unavailable = point.reason.empty() ? "the point was not timed" : point.reason;
        return ledger;
    }
    ledger.roofs_unavailable = roofs.unavailable();
    if (std::ranges::none_of(point.steps, [](const StepResult& step) { return own_time_us(step) > 0; }))
        ledger.unavailable = "its steps were not timed";
    ledger.end_to_end_us = point.end_to_end->latency.summary_ms.median * 1e3;
    const Inflation inflation(point.activity);
    const double run_clock_mhz = point.conditions.sm_clock_mhz.value.value_or(0);
    const std::optional<double> graph_node_us = roofs.latency_us("graph_node");
    const Origin dram = dram_origin(point);
    for (const StepResult& step : point.steps) {
        StepLedger& entry = ledger.steps.emplace_back();
        entry.step = &step;
        entry.time_us = own_time_us(step);
        entry.demands = demands_of(step, roofs, dram, run_clock_mhz);
        if (entry.time_us <= 0) continue;
        const double start_and_end_us = split_gaps(entry, graph_node_us);
        split_kernels(entry, run_clock_mhz, start_and_end_us);
        entry.cycles = account_of(step, run_clock_mhz);
        entry.on_gpu = point.backend() == "cuda";
        ledger.total += entry.lines;
        ledger.total[Line::recording] -= recording_us(step, inflation);
    }
    if (point.activity.unprofiled_ms > 0)
        ledger.total[Line::drift] = ledger.end_to_end_us - point.activity.unprofiled_ms * 1e3;
    ledger.total[Line::residual] = ledger.end_to_end_us - ledger.total.total_us();
    ledger.by_layer = group(ledger.steps, [](const StepResult& step) { return layer_group(step.layer); });
    ledger.by_op = group(ledger.steps, [](const StepResult& step) { return step.op; });
    ledger.marginal = check_marginal(point, ledger, inflation);
    return ledger;
}

}  // namespace kbench
