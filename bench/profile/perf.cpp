// Counters of this process's threads, and HostCounters: those together with a source of memory traffic.
#include "bench/profile/perf.h"

#include <linux/perf_event.h>

#include <string_view>
#include <utility>

#include "bench/profile/perf_events.h"
#include "bench/profile/perf_memory.h"

namespace kbench {

using namespace perf_events;

class ThreadCounters {
  public:
    EventSum cycles{{"cycles", true, false}}, instructions{{"instructions", true, false}};
};

namespace {

constexpr std::string_view no_core_pmu = "this machine exposes no core PMU (virtual machine?)";

/// Null with the reason where this process cannot count its threads.
std::unique_ptr<ThreadCounters> open_core(PerfSystem& system, std::string& why_not) {
    if (hybrid(system)) {
        why_not = is_hybrid;
        return nullptr;
    }
    auto counters = std::make_unique<ThreadCounters>();
    int error = open_threads(system, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}, 1, counters->cycles);
    if (error == 0)
        error = open_threads(system, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}, 1, counters->instructions);
    if (error == 0) return counters;
    why_not = open_failure(system, error, own_threads, no_core_pmu);
    return nullptr;
}

}  // namespace

Quantity core_clock_mhz(const HostCounts& counts) { return quotient(counts.cycles, counts.cpu_seconds, 1e-6); }
Quantity instructions_per_cycle(const HostCounts& counts) { return quotient(counts.instructions, counts.cycles, 1); }

HostCounters::HostCounters() = default;
HostCounters::HostCounters(HostCounters&&) noexcept = default;
HostCounters& HostCounters::operator=(HostCounters&&) noexcept = default;
HostCounters::~HostCounters() = default;

HostCounters HostCounters::open(PerfSystem& system) {
    HostCounters counters;
    counters.traffic_ = open_traffic(system, counters.why_not_);
    counters.threads_ = open_core(system, counters.no_core_pmu_);
    if (!counters.threads_) counters.why_not_.push_back("core counters: " + counters.no_core_pmu_);
    return counters;
}

std::string HostCounters::traffic_source() const { return traffic_ ? traffic_->source() : ""; }

// The core counters are read nearest to the work: cycles between the readings of other counters are not the work's.
void HostCounters::start() {
    if (traffic_) traffic_->start();
    if (!threads_) return;
    threads_->instructions.start();
    threads_->cycles.start();
}

HostCounts HostCounters::stop() {
    HostCounts counts;
    counts.cycles = counts.instructions = counts.cpu_seconds = Quantity::unavailable(no_core_pmu_);
    if (threads_) {
        counts.cycles = threads_->cycles.stop();
        counts.instructions = threads_->instructions.stop();
        counts.cpu_seconds = counts.cycles.value ? Quantity::measured(threads_->cycles.enabled_s()) : counts.cycles;
    }
    Traffic traffic;
    if (traffic_)
        traffic = traffic_->stop();
    else
        traffic.read = traffic.write = Quantity::unavailable(std::string(no_traffic));
    counts.dram_bytes = total(traffic.read, traffic.write);
    counts.dram_read_bytes = std::move(traffic.read);
    counts.dram_write_bytes = std::move(traffic.write);
    return counts;
}

}  // namespace kbench
