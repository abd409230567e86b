// Chooses the thief of a device and divides it between thief and work.
#include "bench/measure/point/thief.h"

#include <string>

#include "bench/device/multiprocessors.h"
#include "bench/measure/point/cpu_thief.h"
#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/measure/point/cuda/thief.h"
#endif

namespace kbench {

std::unique_ptr<Thief> make_thief([[maybe_unused]] Device& device, [[maybe_unused]] int multiprocessors) {
#ifdef KBENCH_HAVE_CUDA
    if (device.is_gpu()) return cuda::make_thief(device, multiprocessors);
#endif
    throw DeviceError("only a GPU has SMs for a thief");
}

int multiprocessors_beside_thief(int all) {
    const int taken = multiprocessors_of_thief(all);
    if (taken == 0) throw DeviceError("this GPU has too few SMs for a thief beside the work");
    return all - taken;
}

DeviceWithThief share_with_thief(Device& device, const Roofs& roofs) {
    if (!device.is_gpu()) return share_cpu_with_thief(device, roofs);
    const int all = device.multiprocessors(), left = multiprocessors_beside_thief(all);
    return {.workers = left, .roofs = roofs, .fewer_threads = nullptr, .thief = make_thief(device, all - left)};
}

}  // namespace kbench
