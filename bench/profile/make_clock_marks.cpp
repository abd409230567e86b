// Chooses the clock marks of a device.
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

}  // namespace kbench
