// The readings at start() and stop() bound the energy counter's window; they lie outside the work, so the means use
// them only where the work was shorter than one period.
#include "bench/profile/condition_sampler.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace kbench {
namespace {

constexpr int min_energy_steps = 20;

}  // namespace

std::vector<ConditionReading> thinned(std::vector<ConditionReading> readings, std::size_t most) {
    if (readings.size() <= most) return readings;
    const std::size_t last = readings.size() - 1;
    for (std::size_t i = 0; i < most; ++i) readings[i] = readings[i * last / (most - 1)];
    readings.resize(most);
    return readings;
}

void ConditionSampler::Mean::add(const Quantity& quantity) {
    if (quantity.value) {
        sum += *quantity.value;
        ++count;
    } else {
        why = quantity.reason;
    }
}

Quantity ConditionSampler::Mean::quantity() const {
    return count > 0 ? Quantity::measured(sum / count) : Quantity::unavailable(why);
}

void ConditionSampler::Means::add(const MachineReading& reading) {
    sm_clock_mhz.add(reading.sm_clock_mhz);
    memory_clock_mhz.add(reading.memory_clock_mhz);
    power_w.add(reading.power_w);
    temperature_c.add(reading.temperature_c);
}

ConditionSampler::~ConditionSampler() { join(); }

void ConditionSampler::join() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

/// Also notes its throttle reasons. Called without the lock: a reading takes milliseconds on some drivers.
std::optional<MachineReading> ConditionSampler::read() {
    try {
        MachineReading reading = machine_.read();
        const std::lock_guard lock(mutex_);
        seen_ |= reading.throttle_mask;
        since_call_ |= reading.throttle_mask;
        return reading;
    } catch (const std::exception& error) {
        const std::lock_guard lock(mutex_);
        failure_ = error.what();
        return std::nullopt;
    }
}

void ConditionSampler::start() {
    if (thread_.joinable()) return;
    stopping_ = false;
    means_ = {};
    readings_.clear();
    seen_ = since_call_ = 0;
    failure_.clear();
    first_ = read();
    started_ = Clock::now();
    if (first_) keep(*first_, 0);
    thread_ = std::thread([this] { run(); });
}

void ConditionSampler::run() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, machine_.period(), [this] { return stopping_; })) {
        lock.unlock();
        const std::optional<MachineReading> reading = read();
        const double at_s = seconds();
        lock.lock();
        if (!reading) continue;
        means_.add(*reading);
        keep(*reading, at_s);
    }
}

double ConditionSampler::seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

/// A reading without a figure says nothing at its moment either; the means carry the reason.
void ConditionSampler::keep(const MachineReading& reading, double at_s) {
    const ConditionReading kept{at_s, reading.sm_clock_mhz.value, reading.memory_clock_mhz.value, reading.power_w.value,
                                reading.temperature_c.value};
    if (kept.sm_clock_mhz || kept.memory_clock_mhz || kept.power_w || kept.temperature_c) readings_.push_back(kept);
}

Conditions ConditionSampler::stop() {
    Conditions conditions;
    if (!thread_.joinable()) {
        const Quantity none = Quantity::unavailable("not sampled");
        conditions.sm_clock_mhz = conditions.memory_clock_mhz = conditions.power_w = conditions.temperature_c =
            conditions.energy_j = none;
        return conditions;
    }
    join();
    const std::optional<MachineReading> last = read();
    const double seconds = this->seconds();
    if (last) keep(*last, seconds);
    conditions.readings = thinned(std::move(readings_), most_readings);

    const auto mean = [&](Mean Means::*field, Quantity MachineReading::*end) {
        Mean result = means_.*field;
        if (result.count == 0)
            for (const auto& reading : {first_, last})
                if (reading) result.add((*reading).*end);
        if (result.count == 0 && result.why.empty()) result.why = failure_;
        return result;
    };
    const Mean power_w = mean(&Means::power_w, &MachineReading::power_w);
    conditions.sm_clock_mhz = mean(&Means::sm_clock_mhz, &MachineReading::sm_clock_mhz).quantity();
    conditions.memory_clock_mhz = mean(&Means::memory_clock_mhz, &MachineReading::memory_clock_mhz).quantity();
    conditions.temperature_c = mean(&Means::temperature_c, &MachineReading::temperature_c).quantity();
    conditions.energy_j = energy(last, power_w, seconds);
    conditions.power_w = power_w.quantity();
    if (!conditions.power_w.value && conditions.energy_j.value && seconds > 0)
        conditions.power_w = Quantity::derived(*conditions.energy_j.value / seconds);
    conditions.throttle_reasons = throttle_names(seen_);
    return conditions;
}

Quantity ConditionSampler::energy(const std::optional<MachineReading>& last, const Mean& power_w,
                                  double seconds) const {
    std::string why = failure_;
    if (first_ && last) {
        if (first_->energy_j.value && last->energy_j.value) {
            const double joules = *last->energy_j.value - *first_->energy_j.value;
            const double step_s = std::chrono::duration<double>(machine_.energy_resolution()).count();
            const bool fine = seconds >= min_energy_steps * step_s;
            if (fine && joules > 0) return Quantity::measured(joules);
            why = fine ? fmt::format("the energy counter moved by {} J", joules)
                       : fmt::format("the energy counter moves only every {:.3g} s", step_s);
        } else {
            why = first_->energy_j.value ? last->energy_j.reason : first_->energy_j.reason;
        }
    }
    if (power_w.count == 0) return Quantity::unavailable(why);
    return {power_w.sum / power_w.count * seconds, Origin::estimated,
            fmt::format("mean of {} power readings times {:.3g} s; {}", power_w.count, seconds, why)};
}

std::uint64_t ConditionSampler::throttle_mask_now() {
    std::uint64_t mask = 0;
    try {
        mask = machine_.throttle_mask();
    } catch (const std::exception& error) {
        const std::lock_guard lock(mutex_);
        failure_ = error.what();
    }
    const std::lock_guard lock(mutex_);
    seen_ |= mask;
    mask |= since_call_;
    since_call_ = 0;
    return mask;
}

}  // namespace kbench
