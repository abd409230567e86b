// What marks are for on any device; cuda/clock_marks.cpp puts them on a GPU's stream.
#include "bench/profile/clock_marks.h"

namespace kbench {

std::unique_ptr<DeviceGraph> capture_between(Device& device, ClockMarks* marks, std::function<void()> enqueue) {
    if (marks == nullptr) return device.capture(std::move(enqueue));
    return device.capture([marks, enqueue = std::move(enqueue)] {
        marks->put(0);
        enqueue();
        marks->put(1);
    });
}

Quantity measured_clock(ClockMarks* marks) {
    if (marks == nullptr) return Quantity::unavailable("only a GPU's clock is read between kernels");
    const std::optional<double> mhz = marks->mhz(0, 1);
    return mhz ? Quantity::measured(*mhz) : Quantity::unavailable("too short for the GPU's timer");
}

}  // namespace kbench
