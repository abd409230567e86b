// The fields of result.json: one list for each struct of result.h, in the order they are written. Writing, reading and
// the check for unknown fields all follow these lists; result.schema.json says the same for other programs.
#pragma once

#include <string_view>
#include <tuple>

#include "kbench/result.h"

namespace kbench {

/// A member and its name in JSON.
template <class Struct, class Member>
struct Field {
    std::string_view name;
    Member Struct::*member;
    bool null_if_not_finite = false;  ///< elsewhere a number that is not finite is an error
    int since = 1;                    ///< version of the schema; files of older versions need not have it
    int optional_since =
        0;  ///< from this version on not written where there is no value or none in a list; 0: always is
};

/// The axes of a point: those after the list before this one, up to `last`; all the rest where that is empty.
struct AxisFields {
    std::string_view last;
};

/// The fields of a struct; specialised for every struct that is an object in JSON.
template <class Struct>
inline constexpr std::tuple<> fields{};

template <>
inline constexpr auto fields<Summary> = std::tuple{Field{"n", &Summary::n},
                                                   Field{"min", &Summary::min},
                                                   Field{"max", &Summary::max},
                                                   Field{"mean", &Summary::mean},
                                                   Field{"median", &Summary::median},
                                                   Field{"p25", &Summary::p25},
                                                   Field{"p75", &Summary::p75},
                                                   Field{"p90", &Summary::p90},
                                                   Field{"p95", &Summary::p95},
                                                   Field{"p99", &Summary::p99},
                                                   Field{"independent", &Summary::independent, false, 6},
                                                   Field{"ci_low", &Summary::ci_low},
                                                   Field{"ci_high", &Summary::ci_high}};

template <>
inline constexpr auto fields<Timing> =
    std::tuple{Field{"samples_ms", &Timing::samples_ms}, Field{"summary_ms", &Timing::summary_ms}};

template <>
inline constexpr auto fields<Cost> = std::tuple{Field{"flops", &Cost::flops}, Field{"bytes_read", &Cost::bytes_read},
                                                Field{"bytes_written", &Cost::bytes_written}};

template <>
inline constexpr auto fields<GpuInfo> =
    std::tuple{Field{"name", &GpuInfo::name},
               Field{"uuid", &GpuInfo::uuid},
               Field{"driver", &GpuInfo::driver},
               Field{"cuda_runtime", &GpuInfo::cuda_runtime},
               Field{"compute_capability_major", &GpuInfo::compute_capability_major},
               Field{"compute_capability_minor", &GpuInfo::compute_capability_minor},
               Field{"multiprocessors", &GpuInfo::multiprocessors},
               Field{"multiprocessors_of_device", &GpuInfo::multiprocessors_of_device, false, 6, 6},
               Field{"memory_bytes", &GpuInfo::memory_bytes},
               Field{"l2_bytes", &GpuInfo::l2_bytes},
               Field{"max_sm_clock_mhz", &GpuInfo::max_sm_clock_mhz},
               Field{"max_memory_clock_mhz", &GpuInfo::max_memory_clock_mhz},
               Field{"power_limit_w", &GpuInfo::power_limit_w}};

template <>
inline constexpr auto fields<HostInfo> = std::tuple{Field{"cpu", &HostInfo::cpu},
                                                    Field{"sockets", &HostInfo::sockets},
                                                    Field{"physical_cores", &HostInfo::physical_cores},
                                                    Field{"logical_cpus", &HostInfo::logical_cpus},
                                                    Field{"threads", &HostInfo::threads},
                                                    Field{"pinned", &HostInfo::pinned},
                                                    Field{"l1d_bytes", &HostInfo::l1d_bytes},
                                                    Field{"l2_bytes", &HostInfo::l2_bytes},
                                                    Field{"l3_bytes", &HostInfo::l3_bytes},
                                                    Field{"memory_bytes", &HostInfo::memory_bytes},
                                                    Field{"isa", &HostInfo::isa},
                                                    Field{"governor", &HostInfo::governor},
                                                    Field{"os", &HostInfo::os},
                                                    Field{"kernel", &HostInfo::kernel},
                                                    Field{"threads_from", &HostInfo::threads_from, false, 6, 6},
                                                    Field{"machine_cpus", &HostInfo::machine_cpus, false, 6, 6},
                                                    Field{"cpu_quota", &HostInfo::cpu_quota, false, 6, 6}};

template <>
inline constexpr auto fields<RunToRun> =
    std::tuple{Field{"deviation", &RunToRun::deviation}, Field{"runs", &RunToRun::runs},
               Field{"command_line", &RunToRun::command_line}, Field{"measured_at", &RunToRun::measured_at}};

template <>
inline constexpr auto fields<Environment> = std::tuple{Field{"kbench_version", &Environment::kbench_version},
                                                       Field{"git_revision", &Environment::git_revision},
                                                       Field{"build_type", &Environment::build_type},
                                                       Field{"compiler", &Environment::compiler},
                                                       Field{"libraries", &Environment::libraries},
                                                       Field{"command_line", &Environment::command_line},
                                                       Field{"started_at", &Environment::started_at},
                                                       Field{"host", &Environment::host},
                                                       Field{"gpu", &Environment::gpu},
                                                       Field{"run_to_run", &Environment::run_to_run, false, 6, 6}};

template <>
inline constexpr auto fields<ConditionReading> =
    std::tuple{Field{"at_s", &ConditionReading::at_s}, Field{"sm_clock_mhz", &ConditionReading::sm_clock_mhz},
               Field{"memory_clock_mhz", &ConditionReading::memory_clock_mhz},
               Field{"power_w", &ConditionReading::power_w}, Field{"temperature_c", &ConditionReading::temperature_c}};

template <>
inline constexpr auto fields<ConditionBlock> = std::tuple{
    Field{"until_s", &ConditionBlock::until_s}, Field{"median_ms", &ConditionBlock::median_ms},
    Field{"sm_clock_mhz", &ConditionBlock::sm_clock_mhz, false, 6, 6}, Field{"readings", &ConditionBlock::readings}};

template <>
inline constexpr auto fields<MarginalCost> =
    std::tuple{Field{"op", &MarginalCost::op}, Field{"steps", &MarginalCost::steps},
               Field{"difference_ms", &MarginalCost::difference_ms}};

template <>
inline constexpr auto fields<Ceiling> = std::tuple{Field{"name", &Ceiling::name},
                                                   Field{"value", &Ceiling::value},
                                                   Field{"low", &Ceiling::low},
                                                   Field{"high", &Ceiling::high},
                                                   Field{"clock_mhz", &Ceiling::clock_mhz},
                                                   Field{"datasheet", &Ceiling::datasheet},
                                                   Field{"threads", &Ceiling::threads, false, 6, 6}};

template <>
inline constexpr auto fields<CeilingRun> = std::tuple{
    Field{"unavailable", &CeilingRun::unavailable}, Field{"device", &CeilingRun::device},
    Field{"driver", &CeilingRun::driver},           Field{"measured_at", &CeilingRun::measured_at},
    Field{"seconds", &CeilingRun::seconds},         Field{"lacked_share", &CeilingRun::lacked_share, false, 6, 6},
    Field{"ceilings", &CeilingRun::ceilings},       Field{"threads", &CeilingRun::threads, false, 6, 6}};

template <>
inline constexpr auto fields<CpuShare> = std::tuple{Field{"waited_share", &CpuShare::waited_share},
                                                    Field{"steal_share", &CpuShare::steal_share},
                                                    Field{"throttled_share", &CpuShare::throttled_share},
                                                    Field{"throttled_periods", &CpuShare::throttled_periods},
                                                    Field{"quota_periods", &CpuShare::quota_periods},
                                                    Field{"involuntary_switches", &CpuShare::involuntary_switches},
                                                    Field{"load", &CpuShare::load},
                                                    Field{"pressure_share", &CpuShare::pressure_share},
                                                    Field{"starved_samples", &CpuShare::starved_samples}};

template <>
inline constexpr auto fields<Conditions> =
    std::tuple{Field{"sm_clock_mhz", &Conditions::sm_clock_mhz},
               Field{"memory_clock_mhz", &Conditions::memory_clock_mhz},
               Field{"power_w", &Conditions::power_w},
               Field{"temperature_c", &Conditions::temperature_c},
               Field{"energy_j", &Conditions::energy_j},
               Field{"throttle_reasons", &Conditions::throttle_reasons},
               Field{"throttle_unavailable", &Conditions::throttle_unavailable, false, 6, 6},
               Field{"throttled_samples", &Conditions::throttled_samples},
               Field{"readings", &Conditions::readings, false, 3},
               Field{"blocks", &Conditions::blocks, false, 6, 6},
               Field{"cpu_share", &Conditions::cpu_share, false, 6, 6}};

template <>
inline constexpr auto fields<KernelResult> =
    std::tuple{Field{"name", &KernelResult::name},
               Field{"short_name", &KernelResult::short_name},
               Field{"time_us", &KernelResult::time_us},
               Field{"gap_us", &KernelResult::gap_us},
               Field{"grid", &KernelResult::grid},
               Field{"block", &KernelResult::block},
               Field{"registers", &KernelResult::registers},
               Field{"static_shared_bytes", &KernelResult::static_shared_bytes},
               Field{"dynamic_shared_bytes", &KernelResult::dynamic_shared_bytes},
               Field{"local_bytes", &KernelResult::local_bytes},
               Field{"cluster_blocks", &KernelResult::cluster_blocks},
               Field{"device", &KernelResult::device},
               Field{"stream", &KernelResult::stream},
               Field{"theoretical_occupancy_pct", &KernelResult::theoretical_occupancy_pct},
               Field{"waves", &KernelResult::waves},
               Field{"lost_in_last_wave_pct", &KernelResult::lost_in_last_wave_pct},
               Field{"blocks_per_sm", &KernelResult::blocks_per_sm},
               Field{"limiters", &KernelResult::limiters},
               Field{"occupancy_hint", &KernelResult::occupancy_hint}};

template <>
inline constexpr auto fields<RecordInflation> =
    std::tuple{Field{"kernel_us", &RecordInflation::kernel_us}, Field{"recorded_us", &RecordInflation::recorded_us},
               Field{"profiled_us", &RecordInflation::profiled_us}};

template <>
inline constexpr auto fields<ActivityRun> = std::tuple{
    Field{"unavailable", &ActivityRun::unavailable}, Field{"runs", &ActivityRun::runs},
    Field{"profiled_ms", &ActivityRun::profiled_ms}, Field{"unprofiled_ms", &ActivityRun::unprofiled_ms, false, 3},
    Field{"kernels_ms", &ActivityRun::kernels_ms},   Field{"gaps_ms", &ActivityRun::gaps_ms},
    Field{"inflation", &ActivityRun::inflation}};

template <>
inline constexpr auto fields<CountedMetric> = std::tuple{
    Field{"name", &CountedMetric::name}, Field{"unit", &CountedMetric::unit}, Field{"source", &CountedMetric::source},
    Field{"origin", &CountedMetric::origin}, Field{"reason", &CountedMetric::reason}};

template <>
inline constexpr auto fields<CounterRun> =
    std::tuple{Field{"requested", &CounterRun::requested}, Field{"unavailable", &CounterRun::unavailable},
               Field{"chip", &CounterRun::chip},           Field{"passes", &CounterRun::passes},
               Field{"seconds", &CounterRun::seconds},     Field{"metrics", &CounterRun::metrics}};

template <>
inline constexpr auto fields<SmCountRun> = std::tuple{Field{"multiprocessors", &SmCountRun::multiprocessors},
                                                      Field{"sm_clock_mhz", &SmCountRun::sm_clock_mhz},
                                                      Field{"launches", &SmCountRun::launches},
                                                      Field{"latency_ms", &SmCountRun::latency_ms},
                                                      Field{"step_us", &SmCountRun::step_us},
                                                      Field{"step_low_us", &SmCountRun::step_low_us},
                                                      Field{"step_high_us", &SmCountRun::step_high_us}};

template <>
inline constexpr auto fields<SmScaling> =
    std::tuple{Field{"unavailable", &SmScaling::unavailable}, Field{"runs", &SmScaling::runs}};

template <>
inline constexpr auto fields<StepPhase> =
    std::tuple{Field{"name", &StepPhase::name}, Field{"median_cycles", &StepPhase::median_cycles},
               Field{"least_cycles", &StepPhase::least_cycles}, Field{"most_cycles", &StepPhase::most_cycles}};

template <>
inline constexpr auto fields<StepAccount> =
    std::tuple{Field{"blocks", &StepAccount::blocks}, Field{"us", &StepAccount::us},
               Field{"start_us", &StepAccount::start_us}, Field{"phases", &StepAccount::phases}};

template <>
inline constexpr auto fields<StepResult> =
    std::tuple{Field{"index", &StepResult::index},
               Field{"layer", &StepResult::layer},
               Field{"op", &StepResult::op},
               Field{"absorbs", &StepResult::absorbs},
               Field{"provider", &StepResult::provider},
               Field{"implementation", &StepResult::implementation},
               Field{"shape", &StepResult::shape},
               Field{"precision", &StepResult::precision},
               Field{"direction", &StepResult::direction},
               Field{"forward", &StepResult::forward, false, 6, 6},
               Field{"cost", &StepResult::cost},
               Field{"padding_flops", &StepResult::padding_flops},
               Field{"spared_flops", &StepResult::spared_flops, false, 6, 6},
               Field{"matrix_flops", &StepResult::matrix_flops, false, 2},
               Field{"dependent_steps", &StepResult::dependent_steps, false, 6, 6},
               Field{"account", &StepResult::account, false, 6, 6},
               Field{"time_us", &StepResult::time_us},
               Field{"counters", &StepResult::counters, false, 2},
               Field{"counters_discarded", &StepResult::counters_discarded, false, 2},
               Field{"kernels", &StepResult::kernels, false, 2}};

// A kernel that wrote NaN or infinity has no finite error: the one place where such numbers are findings.
template <>
inline constexpr auto fields<VerifiedStep> =
    std::tuple{Field{"op", &VerifiedStep::op},
               Field{"shape", &VerifiedStep::shape},
               Field{"provider", &VerifiedStep::provider},
               Field{"implementation", &VerifiedStep::implementation},
               Field{"elements_checked", &VerifiedStep::elements_checked},
               Field{"elements_total", &VerifiedStep::elements_total},
               Field{"worst_error", &VerifiedStep::worst_error, true},
               Field{"bound_there", &VerifiedStep::bound_there, true},
               Field{"error_over_bound", &VerifiedStep::error_over_bound, true}};

template <>
inline constexpr auto fields<Verification> =
    std::tuple{Field{"enabled", &Verification::enabled}, Field{"seconds", &Verification::seconds},
               Field{"steps", &Verification::steps}};

template <>
inline constexpr auto fields<MemoryPlan> = std::tuple{Field{"bytes", &MemoryPlan::bytes}};

template <>
inline constexpr auto fields<LargestBatch> =
    std::tuple{Field{"direction", &LargestBatch::direction}, Field{"batch", &LargestBatch::batch},
               Field{"available_bytes", &LargestBatch::available_bytes}, Field{"ran", &LargestBatch::ran}};

template <>
inline constexpr auto fields<EndToEnd> =
    std::tuple{Field{"latency", &EndToEnd::latency},
               Field{"stream", &EndToEnd::stream},
               Field{"host_to_device", &EndToEnd::host_to_device},
               Field{"device_to_host", &EndToEnd::device_to_host},
               Field{"enqueue", &EndToEnd::enqueue},
               Field{"sequences_per_s", &EndToEnd::sequences_per_s, false, 1, 5},
               Field{"tokens_per_s", &EndToEnd::tokens_per_s, false, 1, 5},
               Field{"energy_per_sequence_j", &EndToEnd::energy_per_sequence_j, false, 1, 5},
               Field{"energy_per_token_j", &EndToEnd::energy_per_token_j, false, 1, 5},
               Field{"converged", &EndToEnd::converged},
               Field{"runs_per_sample", &EndToEnd::runs_per_sample, false, 6, 6}};

template <>
inline constexpr auto fields<Point> = std::tuple{AxisFields{"batch"},
                                                 Field{"batch_is_max", &Point::batch_is_max, false, 4},
                                                 AxisFields{"repeat"},
                                                 Field{"parameters", &Point::parameters},
                                                 AxisFields{},
                                                 Field{"seed", &Point::seed},
                                                 Field{"weights", &Point::weights},
                                                 Field{"status", &Point::status},
                                                 Field{"reason", &Point::reason},
                                                 Field{"memory", &Point::memory},
                                                 Field{"largest_batches", &Point::largest_batches, false, 6, 6},
                                                 Field{"cost", &Point::cost},
                                                 Field{"least_bytes", &Point::least_bytes, false, 6, 6},
                                                 Field{"padding_flops", &Point::padding_flops},
                                                 Field{"recomputed_flops", &Point::recomputed_flops, false, 6, 6},
                                                 Field{"verification", &Point::verification},
                                                 Field{"end_to_end", &Point::end_to_end},
                                                 Field{"conditions", &Point::conditions},
                                                 Field{"activity", &Point::activity, false, 2},
                                                 Field{"counters", &Point::counters, false, 2},
                                                 Field{"sm_scaling", &Point::sm_scaling, false, 6, 6},
                                                 Field{"steps", &Point::steps},
                                                 Field{"marginal", &Point::marginal, false, 3},
                                                 Field{"step_overhead_us", &Point::step_overhead_us},
                                                 Field{"phase_seconds", &Point::phase_seconds}};

template <>
inline constexpr auto fields<PlannedPoint> =
    std::tuple{AxisFields{}, Field{"batch_is_max", &PlannedPoint::batch_is_max}, Field{"tasks", &PlannedPoint::tasks},
               Field{"left_out", &PlannedPoint::left_out}};

template <>
inline constexpr auto fields<StudyPlan> =
    std::tuple{Field{"budget_s", &StudyPlan::budget_s}, Field{"points", &StudyPlan::points}};

template <>
inline constexpr auto fields<ConfigurationKey> =
    std::tuple{Field{"key", &ConfigurationKey::key}, Field{"value", &ConfigurationKey::value},
               Field{"from", &ConfigurationKey::from}};

template <>
inline constexpr auto fields<Result> = std::tuple{Field{"environment", &Result::environment},
                                                  Field{"options", &Result::options, false, 4},
                                                  Field{"configuration", &Result::configuration, false, 6, 6},
                                                  Field{"ceilings", &Result::ceilings, false, 3},
                                                  Field{"study", &Result::study, false, 6, 6},
                                                  Field{"points", &Result::points},
                                                  Field{"warnings", &Result::warnings}};

/// Whether a type is an object described by a list above.
template <class T>
inline constexpr bool has_fields = std::tuple_size_v<std::remove_cvref_t<decltype(fields<T>)>> != 0;

/// The values of an enumeration; JSON has their names.
template <class Enum>
inline constexpr std::array<Enum, 0> values_of{};
template <>
inline constexpr auto values_of<Precision> = all_precisions;
template <>
inline constexpr std::array values_of<Direction> = {Direction::fwd, Direction::bwd, Direction::dgrad, Direction::wgrad};
template <>
inline constexpr std::array values_of<PointStatus> = {PointStatus::done, PointStatus::skipped, PointStatus::failed};
template <>
inline constexpr std::array values_of<Origin> = {Origin::measured, Origin::derived, Origin::estimated,
                                                 Origin::unavailable};

}  // namespace kbench
