// The persistent LSTM in bf16.
#include "kernels/recurrent/persistent_kernel.cuh"

namespace kbench::cuda::persistent {

const void* bf16_kernel(int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant) {
    return kernel_of<__nv_bfloat16>(k_steps, columns, exchange, variant);
}

}  // namespace kbench::cuda::persistent
