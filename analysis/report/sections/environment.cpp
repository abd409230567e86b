#include <fmt/format.h>

#include <algorithm>

#include "analysis/machine/machine.h"
#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

std::string listed(const std::vector<std::string>& parts) { return joined(parts, ", "); }

std::string sized(std::string_view name, std::int64_t bytes) {
    return bytes > 0 ? fmt::format("{} {}", name, format_bytes(static_cast<double>(bytes))) : std::string();
}

std::string gpu_text(const GpuInfo& gpu) {
    const auto limit = [](const Quantity& quantity, std::string_view what, std::string_view unit) {
        return quantity.value ? fmt::format("{} {} {}", what, significant(*quantity.value), unit) : std::string();
    };
    return listed({gpu.name, fmt::format("sm_{}{}", gpu.compute_capability_major, gpu.compute_capability_minor),
                   gpu.multiprocessors_of_device
                       ? fmt::format("{} of its {} SMs", gpu.multiprocessors, *gpu.multiprocessors_of_device)
                       : fmt::format("{} SMs", gpu.multiprocessors),
                   sized("memory", gpu.memory_bytes), sized("L2", gpu.l2_bytes),
                   limit(gpu.max_sm_clock_mhz, "SM clock up to", "MHz"),
                   limit(gpu.max_memory_clock_mhz, "memory clock up to", "MHz"),
                   limit(gpu.power_limit_w, "power limit", "W")});
}

std::string cpus_text(double cpus) { return fmt::format("{:.3g} CPU{}", cpus, cpus == 1 ? "" : "s"); }

/// "2 cores", or "1 core (2 of the machine's 64 CPUs)" where the process may not use all of them.
std::string cores_text(const HostInfo& host) {
    const std::string cores = plural(host.physical_cores, "core");
    if (!host.machine_cpus || *host.machine_cpus <= host.logical_cpus) return cores;
    return fmt::format("{} ({} of the machine's {} CPUs)", cores, host.logical_cpus, *host.machine_cpus);
}

/// "2 threads pinned", or "1 thread pinned (OMP_NUM_THREADS=1)" where something else than cores decided.
std::string threads_text(const HostInfo& host) {
    if (host.threads <= 0) return "";
    const std::string threads =
        fmt::format("{} {}", plural(host.threads, "thread"), host.pinned ? "pinned" : "not pinned");
    if (!host.threads_from || *host.threads_from == threads_from_cores) return threads;
    return fmt::format("{} ({})", threads, *host.threads_from);
}

std::string host_text(const HostInfo& host) {
    return listed({host.cpu, host.sockets > 0 ? plural(host.sockets, "socket") : "", cores_text(host),
                   threads_text(host), host.cpu_quota ? "quota of " + cpus_text(*host.cpu_quota) : "",
                   sized("L1d", host.l1d_bytes), sized("L2", host.l2_bytes), sized("L3", host.l3_bytes),
                   sized("memory", host.memory_bytes), joined(host.isa, " "),
                   host.governor.empty() ? "" : "governor " + host.governor});
}

/// A key that was misread shows here: "n_embd 32 (from hidden_size), n_layer 2; by default: n_inner 4 * n_embd".
std::string configuration_text(const std::vector<ConfigurationKey>& keys) {
    std::vector<std::string> read, defaults;
    for (const ConfigurationKey& key : keys) {
        if (key.value.empty()) continue;
        const bool is_renamed = !key.from.empty() && key.from != key.key;
        (key.from.empty() ? defaults : read)
            .push_back(
                fmt::format("{} {}{}", key.key, key.value, is_renamed ? fmt::format(" (from {})", key.from) : ""));
    }
    return listed(read) + (defaults.empty() ? "" : "; by default: " + listed(defaults));
}

}  // namespace

Section environment_section(const Environment& environment) {
    const auto named = [](const auto& library) { return fmt::format("{} {}", library.first, library.second); };
    Facts facts;
    const auto add = [&facts](std::string_view label, std::string value) {
        facts.facts.push_back({std::string(label), std::move(value), ""});
    };
    add("kbench",
        listed({environment.kbench_version, environment.git_revision, environment.build_type, environment.compiler}));
    add("started", environment.started_at);
    add("command", environment.command_line);
    if (environment.gpu) {
        add("GPU", gpu_text(*environment.gpu));
        add("driver", listed({environment.gpu->driver, "CUDA runtime " + environment.gpu->cuda_runtime}));
    }
    add("CPU", host_text(environment.host));
    add("system", listed({environment.host.os, environment.host.kernel}));
    add("libraries", joined(environment.libraries, ", ", named));
    if (const std::optional<RunToRun>& known = environment.run_to_run)
        add("run to run", fmt::format("medians differ by a deviation of {:.2g} % ({} runs of `{}`)",
                                      100 * known->deviation, known->runs, known->command_line));
    return {"Environment", {std::move(facts)}};
}

std::string device_text(const Environment& environment, bool is_gpu) {
    const HostInfo& host = environment.host;
    const std::string kbench = "kbench " + environment.kbench_version;
    if (is_gpu) return listed({device_name(*environment.gpu), "driver " + environment.gpu->driver, kbench});
    return listed({host.cpu, cores_text(host), threads_text(host),
                   host.cpu_quota ? "quota of " + cpus_text(*host.cpu_quota) : "", kbench});
}

Section device_section(const SectionContext& context) {
    const Environment& environment = context.result().environment;
    const auto has = [&](std::string_view backend) {
        return std::ranges::any_of(context.result().points, [&](const Point& point) {
            return point.backend() == backend && point.status == PointStatus::done;
        });
    };
    const bool has_gpu = environment.gpu && has("cuda");
    Section section{""};
    if (has_gpu) section.add(Paragraph{device_text(environment, true)});
    if (!has_gpu || has("cpu")) section.add(Paragraph{device_text(environment, false)});
    return section;
}

Section environment_section(const SectionContext& context) {
    const Result& result = context.result();
    Section section = environment_section(result.environment);
    section.is_folded = true;
    if (!context.is_full()) section.title.clear();
    if (!result.configuration.empty())
        std::get<Facts>(section.blocks.front())
            .facts.push_back({"config.json", configuration_text(result.configuration), ""});
    return section;
}

}  // namespace kbench
