// The readings at the window's ends lie outside the work: the means use them only where the work was shorter than one
// period.
#include "bench/profile/condition_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace kbench {
namespace {

/// How late two readings of the energy counter may be seen, as a share of the time between them.
constexpr double most_late = 0.05;

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

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

/// Called without the lock: a reading takes milliseconds on some drivers.
std::optional<MachineReading> ConditionSampler::read() {
    try {
        return machine_.read();
    } catch (const std::exception& error) {
        const std::lock_guard lock(mutex_);
        failure_ = error.what();
        return std::nullopt;
    }
}

void ConditionSampler::start() {
    if (thread_.joinable()) return;
    stopping_ = false;
    last_counted_.reset();
    begin();
    thread_ = std::thread([this] { run(); });
}

void ConditionSampler::begin_window() {
    if (thread_.joinable()) begin();
}

void ConditionSampler::begin() {
    {
        const std::lock_guard lock(mutex_);
        failure_.clear();
    }
    const Clock::time_point at = Clock::now();
    std::optional<MachineReading> first = read();
    const std::lock_guard lock(mutex_);
    means_ = {};
    readings_.clear();
    from_.reset();
    to_.reset();
    no_counter_.clear();
    began_ = Clock::now();
    seen_ = since_call_ = first ? first->throttle_mask : 0;
    first_ = std::move(first);
    if (!first_) return;
    keep(*first_, began_);
    note_energy(*first_, at);
}

void ConditionSampler::run() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, machine_.period(), [this] { return stopping_; })) {
        lock.unlock();
        const Clock::time_point at = Clock::now();
        const std::optional<MachineReading> reading = read();
        lock.lock();
        if (!reading || at < began_) continue;  // a new window began meanwhile
        seen_ |= reading->throttle_mask;
        since_call_ |= reading->throttle_mask;
        means_.add(*reading);
        keep(*reading, at);
        note_energy(*reading, at);
    }
}

/// A reading without a figure is left out here; the means have the reason.
void ConditionSampler::keep(const MachineReading& reading, Clock::time_point at) {
    const ConditionReading kept{seconds_between(began_, at), reading.sm_clock_mhz.value, reading.memory_clock_mhz.value,
                                reading.power_w.value, reading.temperature_c.value};
    if (kept.sm_clock_mhz || kept.memory_clock_mhz || kept.power_w || kept.temperature_c) readings_.push_back(kept);
}

/// A counter that moves less often than it is read counts only at its steps.
void ConditionSampler::note_energy(const MachineReading& reading, Clock::time_point at) {
    if (!reading.energy_j.value) {
        no_counter_ = reading.energy_j.reason;
        return;
    }
    const bool coarse = machine_.energy_resolution() > machine_.period();
    const bool moved = last_counted_ && *reading.energy_j.value != last_counted_->joules;
    double late_s = std::chrono::duration<double>(machine_.energy_resolution()).count();
    if (moved) late_s = std::min(late_s, seconds_between(last_counted_->at, at));
    last_counted_ = {*reading.energy_j.value, at, late_s};
    if (coarse && !moved) return;
    (from_ ? to_ : from_) = last_counted_;
}

Quantity ConditionSampler::counted_power() const {
    const double step_s = std::chrono::duration<double>(machine_.energy_resolution()).count();
    const std::string too_coarse = fmt::format("the energy counter moves only every {:.3g} s", step_s);
    if (!from_ || !to_)
        return Quantity::unavailable(!no_counter_.empty() ? no_counter_ : !failure_.empty() ? failure_ : too_coarse);
    const double joules = to_->joules - from_->joules, seconds = seconds_between(from_->at, to_->at);
    if (joules <= 0) return Quantity::unavailable(fmt::format("the energy counter moved by {} J", joules));
    if (std::max(from_->late_s, to_->late_s) > most_late * seconds) return Quantity::unavailable(too_coarse);
    return {joules / seconds, Origin::derived,
            fmt::format("{:.4g} J by the energy counter in {:.3g} s", joules, seconds)};
}

Conditions ConditionSampler::stop() {
    Conditions conditions;
    if (!thread_.joinable()) {
        const Quantity none = Quantity::unavailable("not sampled");
        conditions.sm_clock_mhz = conditions.memory_clock_mhz = conditions.power_w = conditions.temperature_c =
            conditions.energy_j = none;
        return conditions;
    }
    const double seconds = seconds_between(began_, Clock::now());
    join();
    const Clock::time_point at = Clock::now();
    const std::optional<MachineReading> last = read();
    if (last) {
        seen_ |= last->throttle_mask;
        since_call_ |= last->throttle_mask;
        keep(*last, at);
        note_energy(*last, at);
    }
    conditions.readings = thinned(std::move(readings_), most_readings);

    const auto mean = [&](Mean Means::*field, Quantity MachineReading::*end) {
        Mean result = means_.*field;
        if (result.count == 0)
            for (const auto& reading : {first_, last})
                if (reading) result.add((*reading).*end);
        if (result.count == 0 && result.why.empty()) result.why = failure_;
        return result;
    };
    conditions.sm_clock_mhz = mean(&Means::sm_clock_mhz, &MachineReading::sm_clock_mhz).quantity();
    conditions.memory_clock_mhz = mean(&Means::memory_clock_mhz, &MachineReading::memory_clock_mhz).quantity();
    conditions.temperature_c = mean(&Means::temperature_c, &MachineReading::temperature_c).quantity();
    conditions.power_w = counted_power();
    if (conditions.power_w.value) {
        conditions.energy_j = Quantity::derived(*conditions.power_w.value * seconds);
    } else {
        const std::string why = std::move(conditions.power_w.reason);
        const Mean power_w = mean(&Means::power_w, &MachineReading::power_w);
        conditions.power_w = power_w.quantity();
        conditions.energy_j = Quantity::unavailable(why);
        if (power_w.count > 0)
            conditions.energy_j = {
                power_w.sum / power_w.count * seconds, Origin::estimated,
                fmt::format("mean of {} power readings times {:.3g} s; {}", power_w.count, seconds, why)};
    }
    conditions.throttle_reasons = throttle_names(seen_);
    conditions.throttle_unavailable = machine_.throttle_unavailable();
    if (conditions.throttle_unavailable->empty() && !first_ && !last) conditions.throttle_unavailable = failure_;
    return conditions;
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
