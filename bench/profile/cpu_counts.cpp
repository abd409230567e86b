// Files: proc_pid_schedstat and proc_stat (man 5 proc), Documentation/scheduler/sched-stats.rst and sched-bwc.rst,
// Documentation/accounting/psi.rst and admin-guide/cgroup-v2.rst in the Linux source.
#include "bench/profile/cpu_counts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// A thread that is woken on an idle CPU is on its run queue until that CPU has left its sleep: below 50 us, while a
/// thread that finds its CPU taken waits for a slice of milliseconds. Passive teams are woken a thousand times a
/// second.
constexpr double wake_up_s = 50e-6;

/// A thread worked if it wanted a tenth of what the busiest one did: those that watch or show progress did not.
constexpr double working_share = 0.1;

/// The kernel reports CPU time in ticks of user space (man 5 proc).
double tick_s() {
    const long ticks = sysconf(_SC_CLK_TCK);
    return 1.0 / static_cast<double>(ticks > 0 ? ticks : 100);
}

void read_threads(const fs::path& proc, CpuCounts& counts) {
    const fs::path tasks = proc / "self/task";
    std::error_code missing;
    double ran_s = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(tasks, missing)) {
        const std::string name = entry.path().filename().string();
        int id = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), id).ec != std::errc()) continue;
        std::ifstream stream(entry.path() / "schedstat");
        ThreadTime time;
        if (!(stream >> time.ran_s >> time.waited_s >> time.arrivals)) continue;  // it ended, or has no such file
        time.ran_s *= 1e-9;
        time.waited_s *= 1e-9;
        ran_s += time.ran_s;
        counts.threads[id] = time;
    }
    if (ran_s > 0) return;  // a kernel that does not count them shows zeros
    counts.threads.clear();
    counts.no_threads = fmt::format("{}/*/schedstat does not tell", tasks.string());
}

void read_quotas(const std::vector<fs::path>& groups, CpuCounts& counts) {
    bool seen = false;
    for (const fs::path& group : groups) {
        std::ifstream stream(group / "cpu.stat");
        QuotaCounts quota;
        bool has_periods = false;
        std::string key;
        for (double value = 0; stream >> key >> value;) {
            seen = true;
            if (key == "nr_periods") has_periods = (quota.periods = value) >= 0;
            if (key == "nr_throttled") quota.throttled_periods = value;
            if (key == "throttled_time") quota.throttled_s = value * 1e-9;  // version 1
            if (key == "throttled_usec") quota.throttled_s = value * 1e-6;  // version 2
        }
        if (has_periods) counts.quotas[group] = quota;
    }
    if (!seen) counts.no_quotas = "no control group of this process has a cpu.stat that can be read";
}

void read_stat(const fs::path& proc, CpuCounts& counts) {
    std::ifstream stream(proc / "stat");
    std::string line;
    double wanted = 0, steal = 0;
    int cpus = 0;
    while (std::getline(stream, line) && line.starts_with("cpu")) {
        if (!line.starts_with("cpu ")) {
            ++cpus;
            continue;
        }
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        double ticks[8] = {};
        std::istringstream numbers(line.substr(4));
        for (double& one : ticks) numbers >> one;
        if (!numbers) break;
        for (const std::size_t i : {0, 1, 2, 5, 6, 7}) wanted += ticks[i];
        steal = ticks[7];
    }
    if (cpus == 0 || wanted <= 0) {
        counts.no_steal = fmt::format("{} does not tell", (proc / "stat").string());
        return;
    }
    counts.steal_s = steal * tick_s();
    counts.wanted_s = wanted * tick_s();
    counts.steal_step_s = cpus * tick_s();
}

std::optional<double> read_pressure(const fs::path& proc) {
    std::ifstream stream(proc / "pressure/cpu");
    std::string word;
    while (stream >> word) {
        double total_us = 0;
        if (word.starts_with("total=") &&
            std::from_chars(word.data() + 6, word.data() + word.size(), total_us).ec == std::errc())
            return total_us * 1e-6;  // the first line is of some tasks, the next of all
    }
    return std::nullopt;
}

std::optional<double> read_load(const fs::path& proc) {
    std::ifstream stream(proc / "loadavg");
    double load = 0;
    return stream >> load ? std::optional(load) : std::nullopt;
}

std::optional<double> difference(const std::optional<double>& from, const std::optional<double>& to) {
    return from && to ? std::optional(std::max(0.0, *to - *from)) : std::nullopt;
}

std::optional<double> sum(const std::optional<double>& one, const std::optional<double>& other) {
    return one && other ? std::optional(*one + *other) : std::nullopt;
}

/// The share of the working thread that waited the longest; nothing where no thread is known.
Quantity waited_share(const CpuUse& use) {
    double most_wanted = 0, most_waited = 0;
    for (const auto& [id, time] : use.counts.threads) most_wanted = std::max(most_wanted, time.ran_s + time.waited_s);
    for (const auto& [id, time] : use.counts.threads)
        if (time.ran_s + time.waited_s >= working_share * most_wanted)
            most_waited = std::max(most_waited, time.waited_s - time.arrivals * wake_up_s);
    if (use.counts.threads.empty()) return Quantity::unavailable(use.counts.no_threads);
    return Quantity::measured(std::min(1.0, most_waited / use.wall_s));
}

Quantity steal_share(const CpuUse& use) {
    const CpuCounts& counts = use.counts;
    if (!counts.steal_s || !counts.wanted_s) return Quantity::unavailable(counts.no_steal);
    // A tick may report time that was taken earlier.
    const double steal_s = std::max(0.0, *counts.steal_s - counts.steal_step_s);
    return Quantity::measured(*counts.wanted_s > 0 ? std::min(1.0, steal_s / *counts.wanted_s) : 0);
}

void set_quota(const CpuUse& use, CpuShare& share) {
    if (!use.counts.no_quotas.empty()) {
        share.throttled_share = share.throttled_periods = share.quota_periods =
            Quantity::unavailable(use.counts.no_quotas);
        return;
    }
    QuotaCounts worst;
    for (const auto& [group, quota] : use.counts.quotas)
        if (quota.throttled_s > worst.throttled_s || worst.periods == 0) worst = quota;
    share.throttled_periods = Quantity::measured(worst.throttled_periods);
    share.quota_periods = Quantity::measured(worst.periods);
    double ran_s = 0;
    for (const auto& [id, time] : use.counts.threads) ran_s += time.ran_s;
    if (worst.throttled_s <= 0)
        share.throttled_share = Quantity::measured(0);
    else if (ran_s > 0)
        share.throttled_share = Quantity::measured(worst.throttled_s / (worst.throttled_s + ran_s));
    else
        share.throttled_share = {worst.throttled_periods / std::max(1.0, worst.periods), Origin::estimated,
                                 "throttled periods over all of them; " + use.counts.no_threads};
}

}  // namespace

CpuUse used(const CpuCounts& from, const CpuCounts& to) {
    CpuUse use{to.at_s - from.at_s, to};
    for (auto& [id, time] : use.counts.threads) {
        const auto before = from.threads.find(id);
        if (before == from.threads.end()) continue;  // it began meanwhile
        time.ran_s -= before->second.ran_s;
        time.waited_s -= before->second.waited_s;
        time.arrivals -= before->second.arrivals;
    }
    for (auto& [group, quota] : use.counts.quotas)
        if (const auto before = from.quotas.find(group); before != from.quotas.end()) {
            quota.periods -= before->second.periods;
            quota.throttled_periods -= before->second.throttled_periods;
            quota.throttled_s -= before->second.throttled_s;
        }
    use.counts.steal_s = difference(from.steal_s, to.steal_s);
    use.counts.wanted_s = difference(from.wanted_s, to.wanted_s);
    use.counts.involuntary_switches = difference(from.involuntary_switches, to.involuntary_switches);
    use.counts.pressure_s = difference(from.pressure_s, to.pressure_s);
    return use;
}

void add(CpuUse& all, const CpuUse& more) {
    if (all.wall_s <= 0) {
        all = more;
        return;
    }
    const CpuCounts before = std::move(all.counts);
    all.wall_s += more.wall_s;
    all.counts = more.counts;
    for (const auto& [id, time] : before.threads) {
        ThreadTime& both = all.counts.threads[id];
        both.ran_s += time.ran_s;
        both.waited_s += time.waited_s;
        both.arrivals += time.arrivals;
    }
    for (const auto& [group, quota] : before.quotas) {
        QuotaCounts& both = all.counts.quotas[group];
        both.periods += quota.periods;
        both.throttled_periods += quota.throttled_periods;
        both.throttled_s += quota.throttled_s;
    }
    all.counts.steal_s = sum(before.steal_s, more.counts.steal_s);
    all.counts.wanted_s = sum(before.wanted_s, more.counts.wanted_s);
    all.counts.involuntary_switches = sum(before.involuntary_switches, more.counts.involuntary_switches);
    all.counts.pressure_s = sum(before.pressure_s, more.counts.pressure_s);
}

CpuShare share_of(const CpuUse& use) {
    CpuShare share;
    if (use.wall_s <= 0) {
        for (Quantity CpuShare::*one :
             {&CpuShare::waited_share, &CpuShare::steal_share, &CpuShare::throttled_share, &CpuShare::throttled_periods,
              &CpuShare::quota_periods, &CpuShare::involuntary_switches, &CpuShare::load, &CpuShare::pressure_share})
            share.*one = Quantity::unavailable("not sampled");
        return share;
    }
    const auto measured = [](const std::optional<double>& value, const char* why) {
        return value ? Quantity::measured(*value) : Quantity::unavailable(why);
    };
    share.waited_share = waited_share(use);
    share.steal_share = steal_share(use);
    set_quota(use, share);
    share.involuntary_switches = measured(use.counts.involuntary_switches, "getrusage does not tell");
    share.load = measured(use.counts.load, "no /proc/loadavg");
    share.pressure_share = measured(use.counts.pressure_s, "no /proc/pressure/cpu");
    if (share.pressure_share.value) *share.pressure_share.value = std::min(1.0, *use.counts.pressure_s / use.wall_s);
    return share;
}

CpuCountReader::CpuCountReader(const fs::path& root) : proc_(root / "proc"), groups_(cpu_cgroups(root)) {}

CpuCounts CpuCountReader::read() const {
    CpuCounts counts;
    counts.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    read_threads(proc_, counts);
    read_quotas(groups_, counts);
    read_stat(proc_, counts);
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) == 0) counts.involuntary_switches = static_cast<double>(usage.ru_nivcsw);
    counts.pressure_s = read_pressure(proc_);
    counts.load = read_load(proc_);
    return counts;
}

}  // namespace kbench
