// The file of remembered ceilings, and when they are measured again.
#include "bench/measure/machine/ceilings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "analysis/explain/roof_breach.h"
#include "analysis/machine/ceilings.h"
#include "analysis/machine/impossible_roofs.h"
#include "analysis/machine/machine.h"
#include "analysis/machine/usable_roofs.h"
#include "analysis/result/result_json.h"
#include "bench/measure/machine/environment.h"
#include "bench/profile/condition_sampler.h"
#include "bench/profile/starvation.h"
#include "cpu/probe/probe.h"
#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/write_file.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/measure/machine/cuda/ceilings.h"
#endif

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

/// Version of the kernels that measure a GPU; cpu::probe_version is that of the loops that measure a CPU.
constexpr int cuda_probe_version = 3;

/// Schema of the file; the ceilings in it have result.json's fields.
constexpr std::string_view file_schema = "kbench.ceilings/1";

std::string figure(const Quantity& quantity) {
    return quantity.value ? fmt::format("{:.0f}", *quantity.value) : "unknown";
}

/// A ceiling whose name this version does not know cannot be a roof.
void require_known_names(const CeilingRun& run) {
    for (const Ceiling& ceiling : run.ceilings)
        if (std::ranges::find(ceiling_kinds(), ceiling.name, &CeilingKind::name) == ceiling_kinds().end())
            throw UsageError(fmt::format("no ceiling is called '{}'", ceiling.name));
}

/// Throws std::exception for a file that is not ours.
std::map<std::string, CeilingRun> parse_file(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) throw UsageError("cannot be opened");
    const Json content = Json::parse(stream);
    if (!content.is_object() || content.value("schema", "") != file_schema)
        throw UsageError(fmt::format("its schema is not {}", file_schema));
    std::map<std::string, CeilingRun> entries;
    for (const auto& [key, entry] : content.at("machines").items()) {
        entries[key] = parse_ceilings(entry, "machines");
        require_known_names(entries[key]);
    }
    return entries;
}

/// Other processes see the old file or the new one, never a part; what they have remembered since stays.
void remember(const std::filesystem::path& file, const std::string& key, const CeilingRun& run,
              std::vector<std::string>& warnings) {
    std::vector<std::string> told_before;
    std::map<std::string, CeilingRun> entries = read_ceiling_file(file, told_before);
    entries[key] = run;
    Json content{{"schema", file_schema}, {"machines", Json::object()}};
    try {
        for (const auto& [name, entry] : entries) content["machines"][name] = ceilings_to_json(entry);
        std::error_code error;  // the write below says what is wrong
        if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
        write_file_atomically(file, content.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const Error& error) {
        warnings.push_back(fmt::format("ceilings are measured again next time: {}", error.what()));
    }
}

/// Measures; `discarded` says what happened to the machine meanwhile, if that makes the values worthless later.
CeilingRun measure(const CeilingSource& source, const Environment& environment, double seconds,
                   std::string& discarded) {
    CeilingRun run;
    run.device = source.backend == "cuda" && environment.gpu ? device_name(*environment.gpu) : environment.host.cpu;
    run.driver = source.backend == "cuda" && environment.gpu ? environment.gpu->driver : "";
    run.measured_at = utc_now();
    if (source.backend == "cpu" && environment.host.threads > 0) run.threads = environment.host.threads;
    std::optional<ConditionSampler> conditions;
    std::optional<StarvationWatch> watch;
    if (source.state != nullptr) {
        conditions.emplace(*source.state).start();
        watch.emplace(*source.state).begin();
    }
    const auto start = std::chrono::steady_clock::now();
    try {
        run.ceilings = source.measure(seconds);
        const auto has_value = [](const Ceiling& ceiling) { return ceiling.value.value.has_value(); };
        if (run.ceilings.empty())
            run.unavailable = fmt::format("the backend {} measures none", source.backend);
        else if (std::ranges::none_of(run.ceilings, has_value))
            run.unavailable = run.ceilings.front().value.reason;
    } catch (const std::exception& error) {
        run.ceilings.clear();
        run.unavailable = error.what();
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (conditions) {
        conditions->stop();
        const std::uint64_t mask = conditions->throttle_mask_now();
        if (discards_sample(mask))
            discarded = fmt::format("the machine was throttled ({})", fmt::join(throttle_names(mask), ", "));
        const bool starved = watch->lacked(true).value_or(false);
        if (const std::optional<CpuShare> share = watch->share(true)) run.lacked_share = share->lacked();
        if (starved && discarded.empty())
            discarded = fmt::format("this process lacked its CPUs for {} of the time", percent(*run.lacked_share));
    }
    return run;
}

/// Keeps the higher of each rate of both.
void keep_higher(CeilingRun& run, const CeilingRun& before) {
    for (Ceiling& ceiling : run.ceilings) {
        const auto old = std::ranges::find(before.ceilings, ceiling.name, &Ceiling::name);
        const bool is_rate = ceiling_kind(ceiling.name).unit != "us";
        if (old != before.ceilings.end() && is_rate && old->value.value && old->value.value > ceiling.value.value)
            ceiling = *old;
    }
}

/// Measures, and once more where roofs contradict each other, as other work may have slowed one of them. Roofs that
/// still do are made unavailable, with a line of `warnings` for each.
CeilingRun measure_possible(const CeilingSource& source, const Environment& environment, double seconds,
                            std::string& discarded, std::vector<std::string>& warnings) {
    CeilingRun run = measure(source, environment, seconds, discarded);
    if (impossible_roofs(run).empty()) return run;
    const CeilingRun first = run;
    run = measure(source, environment, seconds, discarded);
    keep_higher(run, first);
    run.seconds += first.seconds;
    const std::vector<ImpossibleRoof> impossible = impossible_roofs(run);
    discard(run, impossible);
    for (const ImpossibleRoof& roof : impossible)
        warnings.push_back(fmt::format("no roof {}: {}, measured twice: other work ran meanwhile, or fewer threads",
                                       roof.ceiling, roof.why));
    return run;
}

CeilingRun without_datasheet(const CeilingSource& source, const Environment& environment, const CeilingRequest& request,
                             const std::filesystem::path& file, std::vector<std::string>& warnings) {
    if (request.policy == CeilingPolicy::none) {
        CeilingRun run;
        run.unavailable = "not asked for (--ceilings none)";
        return run;
    }
    const std::string key = ceiling_key(source, environment);
    if (request.policy == CeilingPolicy::automatic) {
        const std::map<std::string, CeilingRun> remembered = read_ceiling_file(file, warnings);
        if (const auto found = remembered.find(key); found != remembered.end()) return found->second;
    }
    std::string discarded;
    std::vector<std::string> contradictions;
    CeilingRun run = measure_possible(source, environment, request.seconds, discarded, contradictions);
    warnings.insert(warnings.end(), contradictions.begin(), contradictions.end());
    if (!discarded.empty())
        warnings.push_back(
            fmt::format("ceilings were measured while {}: they may be too low and are not remembered", discarded));
    else if (run.unavailable.empty() && contradictions.empty())
        remember(file, key, run, warnings);
    return run;
}

}  // namespace

std::vector<Ceiling> measure_ceilings(Device& device, double seconds) {
#ifdef KBENCH_HAVE_CUDA
    if (device.is_gpu()) return cuda::measure_ceilings(device, seconds);
#endif
    return cpu::measure_ceilings(seconds, device.free_bytes());
}

CeilingSource ceiling_source(Device& device, Profiler& profiler) {
    const auto measure = [&device, &profiler](double seconds) {
        profiler.detach();
        return measure_ceilings(device, seconds);
    };
    return {std::string(name(device.kind())), device.is_gpu() ? cuda_probe_version : cpu::probe_version, measure,
            &profiler.machine_state()};
}

std::string ceiling_key(const CeilingSource& source, const Environment& environment) {
    const std::string loops = fmt::format("probe {} {}", source.probe_version, environment.build_type);
    if (source.backend == "cuda" && environment.gpu) {
        const GpuInfo& gpu = *environment.gpu;
        return fmt::format("cuda|{}|{}|driver {}|{} MHz, memory {} MHz, {} W|{}", device_name(gpu), gpu.uuid,
                           gpu.driver, figure(gpu.max_sm_clock_mhz), figure(gpu.max_memory_clock_mhz),
                           figure(gpu.power_limit_w), loops);
    }
    const HostInfo& host = environment.host;
    const std::string quota = host.cpu_quota ? fmt::format(", quota {:.3g}", *host.cpu_quota) : "";
    return fmt::format("{}|{}|{} sockets, {} cores, {} threads{}{}|{}|governor {}|{}", source.backend, host.cpu,
                       host.sockets, host.physical_cores, host.threads, host.pinned ? " pinned" : "", quota,
                       fmt::join(host.isa, " "), host.governor.empty() ? "unknown" : host.governor, loops);
}

std::map<std::string, CeilingRun> read_ceiling_file(const std::filesystem::path& file,
                                                    std::vector<std::string>& warnings) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return {};
    try {
        return parse_file(file);
    } catch (const std::exception& problem) {
        warnings.push_back(fmt::format("remembered ceilings {} ignored: {}", file.string(), problem.what()));
        return {};
    }
}

CeilingRun obtain_ceilings(const CeilingSource& source, const Environment& environment, const CeilingRequest& request,
                           const std::filesystem::path& file, std::vector<std::string>& warnings) {
    CeilingRun run = without_datasheet(source, environment, request, file, warnings);
    const MachineFile* known = machine_of(environment, source.backend);
    const MachineFile here = known != nullptr ? scaled_to(*known, environment) : MachineFile{};
    add_datasheet(run, known != nullptr ? &here : nullptr);
    if (source.backend == "cuda" && environment.gpu) leave_out_unusable(run, *environment.gpu, known);
    return run;
}

/// Measures once more and keeps the better of each rate. False where nothing could be measured.
static bool measure_again(const CeilingSource& source, const CeilingRequest& request, const std::filesystem::path& file,
                          Result& result) {
    const CeilingRequest again{CeilingPolicy::measure, request.seconds};
    CeilingRun run = obtain_ceilings(source, result.environment, again, file, result.warnings);
    if (!run.unavailable.empty()) return false;
    keep_higher(run, result.ceilings);
    const double measured_s = run.seconds;
    run.seconds += result.ceilings.seconds;
    result.ceilings = run;
    // Those of a throttled machine were not remembered, and the better of both must not be either.
    const std::string key = ceiling_key(source, result.environment);
    const std::map<std::string, CeilingRun> remembered = read_ceiling_file(file, result.warnings);
    const auto own = remembered.find(key);
    if (own != remembered.end() && own->second.measured_at == run.measured_at && own->second.seconds == measured_s)
        remember(file, key, run, result.warnings);
    return true;
}

bool mend_low_ceilings(const CeilingSource& source, const CeilingRequest& request, const std::filesystem::path& file,
                       Result& result) {
    if (result.ceilings.ceilings.empty() || !worst_breach(result)) return false;
    int measured = 1;
    while (measured < most_measurements && worst_breach(result) && measure_again(source, request, file, result))
        ++measured;
    if (const std::optional<RoofBreach> breach = worst_breach(result))
        result.warnings.push_back(fmt::format(
            "step {} ran {:.0f} % above the roof {}, measured {} times: other work on this machine took more from the probes than from the model, so shares of roofs are too high",
            breach->step, breach->excess * 100, breach->ceiling, measured));
    return true;
}

std::filesystem::path ceiling_file(const std::filesystem::path& cache_directory) {
    return cache_directory / "ceilings.json";
}

}  // namespace kbench
