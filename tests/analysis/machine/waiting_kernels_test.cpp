// Which kernels are known to wait for other ranks.
#include "analysis/machine/waiting_kernels.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(WaitingKernels, AreToldByTheNamesOfCommunicationLibraries) {
    for (const char* kernel :
         {"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
          "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
          "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16",
          "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
          "nvshmemi_signal_wait_until_on_stream_kernel(unsigned long volatile*, int, unsigned long)",
          "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)"})
        EXPECT_TRUE(waits_for_other_ranks(kernel)) << kernel;
    for (const char* kernel : {"sm90_xmma_gemm_f16f16_f16f32_tn", "my_ncclDevKernel_", "reduce_kernel<512, 1>", ""})
        EXPECT_FALSE(waits_for_other_ranks(kernel)) << kernel;
}

}  // namespace
}  // namespace kbench
