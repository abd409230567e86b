// Chooses the thief of a device: only a GPU has one.
#include "bench/measure/thief.h"

#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/measure/cuda/thief.h"
#endif

namespace kbench {

std::unique_ptr<Thief> make_thief([[maybe_unused]] Device& rest) {
#ifdef KBENCH_HAVE_CUDA
    if (rest.is_gpu()) return cuda::make_thief(rest);
#endif
    throw DeviceError("only a GPU has SMs for a thief");
}

}  // namespace kbench
