// How often roofs are read, and which.
#include "bench/measure/point/roof_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "bench/profile/starvation.h"
#include "cpu/probe/probe.h"
#include "kbench/statistics.h"

namespace kbench {
namespace {

/// From the end of a reading to the next one, in lengths of a reading.
constexpr double readings_apart = 10;
/// Nor does what moves a shared host change faster.
constexpr double least_apart_s = 0.2;

}  // namespace

RoofWatch::RoofWatch(RoofSource source, std::function<double()> now_s)
    : source_(std::move(source)), now_s_(std::move(now_s)) {
    for (const std::string& name : source_.names) readings_.push_back({name, {}});
}

double RoofWatch::steady_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool RoofWatch::look(const std::function<void()>& refill) {
    const double began = now_s_();
    if (has_looked_ && began < next_s_) return false;
    const std::vector<double> values = source_.read();
    for (std::size_t i = 0; i < values.size(); ++i) readings_[i].values.push_back(values[i]);
    if (refill) refill();
    const double ended = now_s_();
    next_s_ = ended + std::max(least_apart_s, readings_apart * (ended - began));
    spent_s_ += ended - began;
    has_looked_ = true;
    return true;
}

std::vector<RoofReadings> RoofWatch::readings() const {
    std::vector<RoofReadings> read = readings_;
    std::erase_if(read, [](const RoofReadings& roof) { return roof.values.empty(); });
    return read;
}

std::unique_ptr<RoofWatch> make_roof_watch(Device& device, MachineState& machine, const Roofs& roofs,
                                           Precision precision, const SamplerOptions& sampler) {
    if (device.is_gpu() || roofs.origin() != Origin::measured || sampler.time_budget_s <= sampler.trial_budget_s)
        return nullptr;
    std::vector<std::string> names = cpu_ceilings_of(precision);
    std::erase_if(names, [&](const std::string& name) { return !roofs.value(name); });
    if (names.empty()) return nullptr;
    const auto reader = std::make_shared<cpu::RoofReader>(names, device.free_bytes());
    return std::make_unique<RoofWatch>(RoofSource{reader->names(), [reader, &machine] {
                                                      StarvationWatch watch(machine);
                                                      watch.begin();
                                                      std::vector<double> values = reader->read();
                                                      if (watch.lacked(true).value_or(false)) values.clear();
                                                      return values;
                                                  }});
}

std::string disturbance_warning(const Roofs& roofs, const Conditions& conditions) {
    constexpr double least_share = 0.5;
    for (const RoofReadings& readings : conditions.roofs) {
        if (readings.values.size() < fewest_roof_readings) continue;
        const double roof = roofs.value(readings.ceiling).value_or(0), median = summarise(readings.values).median;
        if (median >= least_share * roof) continue;
        return fmt::format(
            "between the samples {} reached {:.0f} % of its roof: other work used this host, so that these times are no "
            "evidence of what the machine can do; run again when it is idle",
            readings.ceiling, 100 * median / roof);
    }
    return "";
}

std::function<std::vector<double>()> watched(std::function<std::vector<double>()> chunk, RoofWatch* watch) {
    if (watch == nullptr) return chunk;
    // How long it takes is not known before it ran.
    return [chunk = std::move(chunk), watch, last_ms = std::numeric_limits<double>::infinity()]() mutable {
        watch->look(last_ms < short_forward_ms ? [&chunk] { chunk(); } : std::function<void()>());
        std::vector<double> times = chunk();
        if (!times.empty()) last_ms = times.back();
        return times;
    };
}

}  // namespace kbench
