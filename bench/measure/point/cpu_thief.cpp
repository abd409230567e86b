// A thief of threads that are pinned on cores of their own. It takes no bandwidth of the last-level cache: how much
// that gives all cores together is not measured, and one core takes little of it.
#include "bench/measure/point/cpu_thief.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/cpu_split.h"
#include "cpu/probe/thief.h"
#include "cpu/threads.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// It ends by itself so long after a start.
constexpr std::chrono::seconds longest_cpu_theft{8};
/// Enough for looks that are long beside a slice of the system's scheduler.
constexpr double roof_s = 0.1;

class CpuThief final : public Thief {
  public:
    explicit CpuThief(const std::vector<int>& cpus) : threads_(cpus) {}

    void start(Taken what, double bytes_per_s) override {
        if (what == Taken::l2) throw DeviceError("a CPU's thief takes no bandwidth of caches");
        const cpu::Theft theft = what == Taken::dram      ? cpu::Theft::stores
                                 : what == Taken::compute ? cpu::Theft::compute
                                                          : cpu::Theft::nothing;
        threads_.start(theft, bytes_per_s, longest_cpu_theft);
        bytes_before_ = threads_.bytes();
        started_ = SteadyClock::now();
    }
    bool is_running() override { return threads_.is_running(); }
    void stop() override { threads_.start(cpu::Theft::nothing, 0, {}); }
    Count count() const override {
        return {threads_.bytes() - bytes_before_, std::chrono::duration<double>(SteadyClock::now() - started_).count()};
    }

  private:
    using SteadyClock = std::chrono::steady_clock;
    cpu::ThiefThreads threads_;
    double bytes_before_ = 0;
    SteadyClock::time_point started_{};
};

/// The highest that was seen of the memory: by the run's own roof, or by stores of all cores together, which may ask
/// for more than the work's threads.
Roofs shared_roofs(const Roofs& roofs, const std::vector<int>& cpus) {
    const std::optional<Roof> own = roofs.bandwidth(Level::dram);
    CeilingRun run;
    Ceiling& dram = run.ceilings.emplace_back();
    dram.name = "cpu_dram_read";
    dram.value = Quantity::measured(std::max(own ? own->per_s : 0, cpu::stored_bytes_per_s(cpus, roof_s)) * 1e-9);
    dram.low = dram.high = *dram.value.value;
    return {run, name(BackendKind::cpu)};
}

CoreSplit split_of(const DeviceInfo& info) {
    return split_for_thief({.threads = info.threads,
                            .cores = info.cores,
                            .sockets = cpu::cpu_info().sockets,
                            .pinned = info.pinned,
                            .quota = info.cpu_quota});
}

}  // namespace

std::string why_no_thief(const Device& device) {
    const CoreSplit split = split_of(device.info());
    return split.refused ? fmt::format("no thief beside the work: {}", text_of(*split.refused)) : "";
}

DeviceWithThief share_cpu_with_thief(Device& device, const Roofs& roofs) {
    const DeviceInfo& info = device.info();
    if (const std::string why = why_no_thief(device); !why.empty()) throw DeviceError(why);
    const CoreSplit split = split_of(info);
    const std::vector<int> of_thief(info.cpus.begin() + info.cores - split.thief, info.cpus.begin() + info.cores);
    std::vector<int> of_both(info.cpus.begin(), info.cpus.begin() + split.work);
    of_both.insert(of_both.end(), of_thief.begin(), of_thief.end());
    DeviceWithThief shared{.workers = split.work,
                           .roofs = shared_roofs(roofs, of_both),
                           .fewer_threads = nullptr,
                           .thief = std::make_unique<CpuThief>(of_thief)};
    if (split.work < info.threads) shared.fewer_threads = std::make_unique<FewerThreads>(device, split.work);
    return shared;
}

}  // namespace kbench
