// The persistent LSTM whose blocks exchange h by counters, in bf16.
#include "kernels/recurrent/persistent/counted.cuh"

namespace kbench::cuda::persistent {

const void* counted_bf16_kernel(int k_steps, int columns, PersistentVariant variant) {
    return counted_kernel_of<__nv_bfloat16>(k_steps, columns, variant);
}

}  // namespace kbench::cuda::persistent
