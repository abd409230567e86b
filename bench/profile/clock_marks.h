// The SMs' own clock inside a graph: readings of all SMs' clocks at places between kernels.
//
//     const std::unique_ptr<ClockMarks> marks = make_clock_marks(*device, 2);
//     const std::unique_ptr<DeviceGraph> graph = capture_between(*device, marks.get(), [&] { ...; });
//     for (int i = 0; i < 20; ++i) {
//         graph->launch();
//         if (marks) marks->keep();
//     }
//     const Quantity mhz = measured_clock(marks.get());
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "bench/device/device.h"
#include "kbench/quantity.h"

namespace kbench {

class ClockMarks {
  public:
    virtual ~ClockMarks() = default;
    /// Enqueues a reading on the device's stream; within Device::capture it becomes a part of the graph. It takes what
    /// a small kernel takes, so a time must not hold one.
    virtual void put(int place) = 0;
    /// Enqueues, behind a launch, that what it read is kept; a launch without is not in the mean. Of more launches than
    /// there is memory for the last are kept.
    virtual void keep() = 0;
    /// The SMs' mean clock between two places of the launches that were kept, see clock_mhz (clock_readings.h). Waits
    /// for the device.
    virtual std::optional<double> mhz(int from, int to) = 0;
};

/// How many launches are kept of one graph: 128 of 15 places take 4 MB of an H100.
inline constexpr int kept_clock_launches = 128;

/// Marks at places 0 to `places` - 1 of work on the stream of `device`, which must outlive them. Null on a CPU, whose
/// clock is not read so. Throws DeviceError as any allocation does.
std::unique_ptr<ClockMarks> make_clock_marks(Device& device, int places, int launches = kept_clock_launches);

/// A graph of `enqueue` with marks at place 0 before and place 1 after it; without `marks` of `enqueue` alone.
std::unique_ptr<DeviceGraph> capture_between(Device& device, ClockMarks* marks, std::function<void()> enqueue);

/// The clock from place 0 to place 1, or why it is not known.
Quantity measured_clock(ClockMarks* marks);

}  // namespace kbench
