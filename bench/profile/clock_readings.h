// From the SMs' clocks at two places of a graph to the clock between them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kernels/probe/clock_reading.h"

namespace kbench {

/// Intervals that are shorter in the mean of their launches are not read: %globaltimer may tick only once a
/// microsecond, and the kernel that reads, which does no work, would be a large part of them.
inline constexpr double shortest_clock_interval_us = 20;

/// Readings of equal launches one after another: by launch, by place, by SM.
struct ClockReadings {
    std::span<const cuda::probe::ClockReading> all;
    std::size_t places = 0, sms = 0;

    std::size_t launches() const { return places * sms > 0 ? all.size() / (places * sms) : 0; }
    const cuda::probe::ClockReading& at(std::size_t launch, std::size_t place, std::size_t sm) const {
        return all[(launch * places + place) * sms + sm];
    }
};

/// The clock from place `from` to place `to`, MHz: of each SM its cycles over its time in all launches in which it was
/// read at both, which lets the timer's ticks average out; the median over these SMs. Nothing where no SM was read at
/// both, where intervals are shorter than shortest_clock_interval_us, or where all launches together are too short for
/// the timer (Span::mhz).
std::optional<double> clock_mhz(const ClockReadings& readings, std::size_t from, std::size_t to);

}  // namespace kbench
