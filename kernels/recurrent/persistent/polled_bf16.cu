// The persistent LSTM whose blocks poll h, in bf16.
#include "kernels/recurrent/persistent/polled.cuh"

namespace kbench::cuda::persistent {

const void* polled_bf16_kernel(int k_steps, int columns, PersistentVariant variant) {
    return polled_kernel_of<__nv_bfloat16>(k_steps, columns, variant);
}

}  // namespace kbench::cuda::persistent
