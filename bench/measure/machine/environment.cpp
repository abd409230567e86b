// Reads the host, the build and the device once.
#include "bench/measure/machine/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <chrono>
#include <fstream>

#include "bench/plan/device_support.h"
#include "bench/version.h"
#include "cpu/threads.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

std::string os_name() {
    std::ifstream file("/etc/os-release");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("PRETTY_NAME=")) {
            std::string value = line.substr(12);
            if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
            return value;
        }
    return "unknown";
}

std::string compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#else
    return "GCC " __VERSION__;
#endif
}

}  // namespace

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

std::string version_text() {
    return fmt::format("kbench {} ({}), {}, {}", version::number, version::git_revision, version::build_type,
                       compiler());
}

Environment describe_environment(const Device& device, const MachineState& state, const std::string& command_line) {
    Environment e;
    e.kbench_version = version::number;
    e.git_revision = version::git_revision;
    e.build_type = version::build_type;
    e.compiler = compiler();
    e.command_line = valid_utf8(command_line);  // as it stands in the result, from which reports may be drawn again
    e.started_at = utc_now();
    e.libraries = library_versions(device);

    const cpu::CpuInfo& cpu = cpu::cpu_info();
    HostInfo& h = e.host;
    h.cpu = cpu.model;
    h.sockets = cpu.sockets;
    h.physical_cores = cpu.physical_cores;
    h.logical_cpus = cpu.logical_cpus;
    h.threads = device.info().threads;
    h.pinned = device.info().pinned;
    if (!device.info().threads_from.empty()) h.threads_from = device.info().threads_from;
    h.machine_cpus = cpu.machine_cpus;
    h.cpu_quota = device.info().cpu_quota;
    h.l1d_bytes = cpu.l1d_bytes;
    h.l2_bytes = cpu.l2_bytes;
    h.l3_bytes = cpu.l3_bytes;
    h.isa = cpu.isa;
    h.governor = cpu.governor;
    struct sysinfo memory {};
    if (sysinfo(&memory) == 0)
        h.memory_bytes = static_cast<std::int64_t>(memory.totalram) * static_cast<std::int64_t>(memory.mem_unit);
    h.os = os_name();
    utsname kernel{};
    if (uname(&kernel) == 0) h.kernel = kernel.release;

    e.gpu = device.info().gpu;
    if (e.gpu) state.describe(*e.gpu);
    return e;
}

}  // namespace kbench
