// The persistent LSTM in fp16.
#include "kernels/recurrent/persistent_kernel.cuh"

namespace kbench::cuda::persistent {

const void* fp16_kernel(int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant) {
    return kernel_of<__half>(k_steps, columns, exchange, variant);
}

}  // namespace kbench::cuda::persistent
