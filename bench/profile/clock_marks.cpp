// What marks are for on any device; cuda/clock_marks.cpp puts them on a GPU's stream.
#include "bench/profile/clock_marks.h"

#ifdef KBENCH_HAVE_CUDA
#include "bench/profile/cuda/clock_marks.h"
#endif

namespace kbench {

std::unique_ptr<ClockMarks> make_clock_marks([[maybe_unused]] Device& device, [[maybe_unused]] int places,
                                             [[maybe_unused]] int launches) {
#ifdef KBENCH_HAVE_CUDA
    if (device.is_gpu()) return cuda::make_clock_marks(device, places, launches);
#endif
    return nullptr;
}

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
