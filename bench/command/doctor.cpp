// kbench doctor: what this machine has, what is missing, and what that costs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>

#include "bench/command/command.h"
#include "bench/device/backend.h"
#include "bench/measure/environment.h"
#include "models/base/error.h"

namespace kbench {
namespace {

void row(std::string_view what, std::string_view state, std::string_view text) {
    fmt::print("{:<16} {:<8} {}\n", what, state, text);
}

void check_quantity(std::string_view what, const Quantity& quantity, std::string_view unit, std::string_view cost) {
    if (quantity.value)
        row(what, "ok", fmt::format("{:.0f} {}", *quantity.value, unit));
    else
        row(what, "missing", fmt::format("{}: {}", quantity.reason, cost));
}

void check_precisions(const Backend& backend) {
    for (const Precision precision : all_precisions) {
        const std::string why = backend.unsupported(precision);
        row(fmt::format("{} {}", name(backend.kind()), name(precision)), why.empty() ? "ok" : "missing", why);
    }
}

void check_state(Backend& backend) {
    const MachineReading reading = backend.machine_state().read();
    const bool gpu = backend.kind() == BackendKind::cuda;
    check_quantity(gpu ? "gpu clock" : "cpu clock", reading.sm_clock_mhz, "MHz", "clocks are not recorded");
    check_quantity(gpu ? "gpu temperature" : "cpu temperature", reading.temperature_c, "C", "not recorded");
    if (reading.power_w.value || !reading.energy_j.value)
        check_quantity(gpu ? "gpu power" : "cpu power", reading.power_w, "W", "no energy figures");
    const std::string throttle = backend.machine_state().throttle_unavailable();
    row(gpu ? "gpu throttling" : "cpu throttling", throttle.empty() ? "ok" : "missing",
        throttle.empty() ? "seen, samples under it are repeated" : throttle + ": throttled samples are not noticed");
}

void check_counters(Backend& backend) {
    for (const auto& [what, found] : backend.probe_counters())
        row(what, found.value ? "ok" : "missing",
            found.value ? std::string(name(found.origin)) : found.reason + ": timing goes on without");
}

}  // namespace

int doctor_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    if (!arguments.empty()) {
        if (arguments.front() != "--help" && arguments.front() != "-h")
            throw UsageError(fmt::format("doctor takes no '{}'", arguments.front()));
        fmt::print("kbench doctor: what this machine has, what is missing, and what that costs\n");
        return 0;
    }
    fmt::print("{}\n\n", version_text());
    const std::unique_ptr<Backend> cpu = make_cpu_backend();
    const Environment e = describe_environment(*cpu, command_line);
    row("cpu", "ok",
        fmt::format("{}: {} sockets, {} physical cores, {}", e.host.cpu, e.host.sockets, e.host.physical_cores,
                    fmt::join(e.host.isa, " ")));
    row("memory", "ok",
        fmt::format("{:.1f} GB, {:.1f} GB free", static_cast<double>(e.host.memory_bytes) * 1e-9,
                    static_cast<double>(cpu->free_bytes()) * 1e-9));
    row("cpu pinning", cpu->pinned() ? "ok" : "missing",
        cpu->pinned() ? fmt::format("{} threads, one a core", cpu->threads()) : "refused: CPU times vary more");
    for (const auto& [library, version] : e.libraries) row(library, "ok", version);
    check_state(*cpu);
    check_precisions(*cpu);
    check_counters(*cpu);
#ifdef KBENCH_HAVE_CUDA
    if (const std::string why = cuda_unavailable(); !why.empty()) {
        row("gpu", "missing", why + ": models run on the CPU");
    } else {
        const std::unique_ptr<Backend> gpu = make_cuda_backend();
        const GpuInfo info = gpu->gpu_info().value();
        row("gpu", "ok",
            fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GB, driver {}", info.name,
                        info.compute_capability_major, info.compute_capability_minor, info.multiprocessors,
                        static_cast<double>(info.memory_bytes) * 1e-9, info.driver));
        std::map<std::string, std::string> libraries;
        gpu->add_libraries(libraries);
        for (const auto& [library, version] : libraries) row(library, "ok", version);
        check_state(*gpu);
        check_precisions(*gpu);
        check_counters(*gpu);
    }
#else
    row("gpu", "missing", "this kbench was built without CUDA (toolkit >= 12.6 needed): models run on the CPU");
#endif
    const std::string cache = cache_directory();
    row("cache", "ok", cache);
    return 0;
}

}  // namespace kbench
