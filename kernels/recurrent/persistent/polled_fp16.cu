// The persistent LSTM whose blocks poll h, in fp16.
#include "kernels/recurrent/persistent/polled.cuh"

namespace kbench::cuda::persistent {

const void* polled_fp16_kernel(int k_steps, int columns, PersistentVariant variant) {
    return polled_kernel_of<__half>(k_steps, columns, variant);
}

}  // namespace kbench::cuda::persistent
