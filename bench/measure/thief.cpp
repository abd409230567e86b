// Chooses the thief of a device: only a GPU has one.
#include "bench/measure/thief.h"

#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/measure/cuda/thief.h"
#endif

namespace kbench {

std::unique_ptr<Thief> make_thief([[maybe_unused]] Device& device, [[maybe_unused]] int multiprocessors) {
#ifdef KBENCH_HAVE_CUDA
    if (device.is_gpu()) return cuda::make_thief(device, multiprocessors);
#endif
    throw DeviceError("only a GPU has SMs for a thief");
}

}  // namespace kbench
