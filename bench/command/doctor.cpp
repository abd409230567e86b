// kbench doctor: what this machine has, what is missing, and what that costs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "analysis/table/table.h"
#include "bench/command/command.h"
#include "bench/command/device_options.h"
#include "bench/command/doctor_cpu.h"
#include "bench/command/repeated/noise.h"
#include "bench/device/console.h"
#include "bench/device/cpu_quota.h"
#include "bench/device/device.h"
#include "bench/device/gpu_code.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/machine/noise.h"
#include "bench/plan/device_support.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

struct DoctorRequest {
    DeviceRequest device;
};

const OptionOf<DoctorRequest> options[] = {
    device_option<DoctorRequest>(),
    threads_option<DoctorRequest>(),
    {"--noise", "", "",
     "instead: how much runs of one command differ here, which kbench compare uses from then on; `--noise -- OPTIONS` chooses the run",
     [](DoctorRequest&, const std::string&) {
         throw UsageError("--noise: comes first and alone, as in `kbench doctor --noise -- --seq 128`");
     }},
};

/// Prints a row as it is found, and remembers what there is to mend.
class DoctorTable {
  public:
    void row(std::string_view what, std::string_view state, std::string_view text) {
        const std::string prefix = fmt::format("{:<18} {:<8} ", what, state);
        put_text(width_ ? wrap(prefix, std::string(text), *width_) : fmt::format("{}{}\n", prefix, text));
        if (state == doctor_warning) mendable_.emplace_back(what);
        if (state == doctor_unusable) unusable_.emplace_back(what);
    }

    void quantity(std::string_view what, const Quantity& quantity, std::string_view unit, std::string_view cost) {
        if (quantity.value)
            row(what, "ok", fmt::format("{:.0f} {}", *quantity.value, unit));
        else
            row(what, "missing", fmt::format("{}: {}", quantity.reason, cost));
    }

    ExitCode conclude() const {
        const DoctorConclusion end = doctor_conclusion(unusable_, mendable_);
        put("\n{}\n", end.text);
        return end.exit;
    }

  private:
    std::optional<std::size_t> width_ = terminal_width();  ///< nothing where others read it: a row is a line
    std::vector<std::string> unusable_, mendable_;
};

void check_precisions(DoctorTable& table, const Device& device) {
    for (const Precision precision : all_precisions) {
        const std::string why = unsupported(device, precision);
        table.row(fmt::format("{} {}", name(device.kind()), name(precision)), why.empty() ? "ok" : "missing", why);
    }
}

void check_state(DoctorTable& table, MachineState& state, bool gpu) {
    const MachineReading reading = state.read();
    table.quantity(gpu ? "gpu clock" : "cpu clock", reading.sm_clock_mhz, "MHz", "clocks are not recorded");
    table.quantity(gpu ? "gpu temperature" : "cpu temperature", reading.temperature_c, "C", "not recorded");
    if (reading.power_w.value || !reading.energy_j.value)
        table.quantity(gpu ? "gpu power" : "cpu power", reading.power_w, "W", "no energy figures");
    const std::string throttle = state.throttle_unavailable();
    table.row(
        gpu ? "gpu throttling" : "cpu throttling", throttle.empty() ? "ok" : "missing",
        throttle.empty() ? "seen, samples under it are repeated" : throttle + ": throttled samples are not noticed");
}

void check_counters(DoctorTable& table, Profiler& profiler) {
    for (const auto& [what, found] : profiler.probe_counters())
        table.row(what,
                  found.value             ? "ok"
                  : has_fix(found.reason) ? doctor_warning
                                          : "missing",
                  found.value ? std::string(name(found.origin)) : found.reason + ": timing goes on without");
}

/// What can be computed and read on a device, and what not.
void check_device(DoctorTable& table, Device& device, Profiler& profiler) {
    for (const auto& [library, version] : library_versions(device)) table.row(library, "ok", version);
    check_state(table, profiler.machine_state(), device.is_gpu());
    check_precisions(table, device);
    check_counters(table, profiler);
}

void check_noise(DoctorTable& table, std::string_view what, const Environment& environment) {
    std::vector<std::string> warnings;
    const std::optional<RunToRun> noise = remembered_noise(noise_file(cache_directory()), environment, warnings);
    if (noise)
        table.row(what, "ok",
                  fmt::format("deviation {:.2g} % ({} runs of `{}`)", 100 * noise->deviation, noise->runs,
                              noise->command_line));
    else
        table.row(what, "missing",
                  warnings.empty()
                      ? "kbench doctor --noise measures it: kbench compare cannot say what two single runs can tell"
                      : warnings.front());
}

std::string gpu_text(const GpuInfo& gpu) {
    return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GB, {}", gpu.name,
                       gpu.compute_capability_major, gpu.compute_capability_minor, gpu.multiprocessors,
                       static_cast<double>(gpu.memory_bytes) * 1e-9, gpu.uuid);
}

/// Which of the build's code the GPU runs.
void check_code(DoctorTable& table, const GpuInfo& gpu) {
    const int major = gpu.compute_capability_major, minor = gpu.compute_capability_minor;
    const std::optional<GpuCode> code = code_for(built_architectures(), major, minor);
    if (!code) return;  // said of the GPU
    table.row("gpu code", "ok",
              fmt::format("{}{}; this build has {}; {}", code->text(),
                          code->machine ? "" : ", which the driver compiles at the first start",
                          code_text(built_architectures()), tried_on(major, minor)));
}

/// A row for each GPU that there is, and what can be done on the one that is chosen.
void check_gpus(DoctorTable& table, const DoctorRequest& request, const std::string& command_line) {
    if (const std::optional<NoGpu> none = no_gpu()) {
        table.row("gpu", none->present ? doctor_unusable : "missing",
                  fmt::format("{}: {}", none->why,
                              none->present ? "nothing is measured without --backend cpu" : "models run on the CPU"));
        return;
    }
    const std::vector<GpuInfo> gpus = visible_gpus();
    const int chosen = std::max(0, gpu_named(request.device.gpu, gpus));
    for (int ordinal = 0; ordinal < std::ssize(gpus); ++ordinal) {
        const GpuInfo& gpu = gpus[static_cast<std::size_t>(ordinal)];
        const std::string why =
            why_no_code(built_architectures(), gpu.name, gpu.compute_capability_major, gpu.compute_capability_minor);
        table.row(fmt::format("gpu {}", ordinal),
                  why.empty()         ? "ok"
                  : ordinal == chosen ? doctor_unusable
                                      : "missing",
                  fmt::format("{}{}", why.empty() ? gpu_text(gpu) : why,
                              ordinal == chosen && gpus.size() > 1 ? "; this one below" : ""));
    }
    DeviceList devices;
    try {
        devices = make_devices(BackendKind::cuda, 0, chosen);
    } catch (const DeviceError& error) {
        table.row("gpu use", doctor_unusable, error.what());
        return;
    }
    Device& device = *devices.front();
    const std::unique_ptr<Profiler> profiler = make_profiler(device);
    GpuInfo info = device.info().gpu.value();
    profiler->machine_state().describe(info);
    table.row("gpu driver", info.driver.empty() ? "missing" : "ok", info.driver);
    check_code(table, info);
    check_device(table, device, *profiler);
    check_noise(table, "gpu run to run", describe_environment(device, profiler->machine_state(), command_line));
}

}  // namespace

std::vector<HelpRow> doctor_rows() { return help_rows<DoctorRequest>(options); }

int doctor_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    if (!arguments.empty() && arguments.front() == "--noise") {
        if (arguments.size() > 1 && arguments[1] != "--")
            throw UsageError(
                fmt::format("doctor --noise takes no '{}'; options of `kbench run` stand behind --", arguments[1]));
        return measure_noise({arguments.begin() + std::min<std::ptrdiff_t>(2, std::ssize(arguments)), arguments.end()});
    }
    DoctorRequest request;
    constexpr CommandText command{
        "kbench doctor",
        "What this machine has, what is missing, what that costs, and what to mend.\n"
        "Exit codes: 0 nothing to mend; 1 something here spoils figures; 3 a GPU that is there cannot be used."};
    if (const std::string help = parse_options(command, options, request, arguments); !help.empty()) {
        put_text(help);
        return 0;
    }
    if (!request.device.gpu.empty()) {
        backend_for(request.device, no_gpu());
        gpu_named(request.device.gpu, visible_gpus());
    }
    double last_minute = 0;
    const std::optional<double> load =
        getloadavg(&last_minute, 1) == 1 ? std::optional(last_minute) : std::nullopt;  // before this adds to it
    const std::unique_ptr<Device> cpu = make_cpu_device(request.device.threads);
    DoctorTable table;
    put("{}\n\n", version_text());
    const std::unique_ptr<Profiler> profiler = make_profiler(*cpu);
    const Environment e = describe_environment(*cpu, profiler->machine_state(), command_line);
    table.row("cpu", "ok",
              fmt::format("{}: {}, {}, {}", e.host.cpu, plural(e.host.sockets, "socket"),
                          plural(e.host.physical_cores, "core"), fmt::join(e.host.isa, " ")));
    table.row("memory", "ok",
              fmt::format("{:.1f} GB, {:.1f} GB free", static_cast<double>(e.host.memory_bytes) * 1e-9,
                          static_cast<double>(cpu->free_bytes()) * 1e-9));
    for (const DoctorRow& one : cpu_time_rows(e.host, cpu_quota(), load)) table.row(one.what, one.state, one.text);
    for (const std::string& warning : cpu->info().warnings)
        if (!warning.starts_with("a control group"))
            table.row("cpu threads", doctor_warning, warning);  // that has its own row
    check_device(table, *cpu, *profiler);
    check_noise(table, "cpu run to run", e);
    check_gpus(table, request, command_line);
    const std::string cache = cache_directory();
    table.row("cache", "ok", cache);
    return static_cast<int>(table.conclude());
}

}  // namespace kbench
