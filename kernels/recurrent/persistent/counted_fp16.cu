// The persistent LSTM whose blocks exchange h by counters, in fp16.
#include "kernels/recurrent/persistent/counted.cuh"

namespace kbench::cuda::persistent {

const void* counted_fp16_kernel(int k_steps, int columns, PersistentVariant variant) {
    return counted_kernel_of<__half>(k_steps, columns, variant);
}

}  // namespace kbench::cuda::persistent
