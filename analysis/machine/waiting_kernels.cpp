#include "analysis/machine/waiting_kernels.h"

#include <algorithm>
#include <string_view>

#include "analysis/machine/kernel_name.h"

namespace kbench {
namespace {

/// How names begin, without namespaces.
constexpr std::string_view waiting_prefixes[] = {
    // NCCL and RCCL; symmetric memory since NCCL 2.27
    "ncclDevKernel_", "ncclKernel_", "ncclSymDevKernel_", "ncclSymkDevKernel_",
    // NVSHMEM
    "nvshmem", "barrier_on_stream_kernel", "barrier_all_on_stream_kernel", "sync_on_stream_kernel",
    "sync_all_on_stream_kernel", "alltoall_on_stream_kernel", "broadcast_on_stream_kernel", "fcollect_on_stream_kernel",
    "rdxn_on_stream_kernel", "reducescatter_on_stream_kernel",
    // PyTorch's symmetric memory
    "barrier_kernel", "put_signal_kernel", "wait_signal_kernel", "multimem_", "one_shot_all_reduce_kernel",
    "two_shot_all_reduce_kernel",
    // vLLM and SGLang; TensorRT-LLM and FlashInfer
    "cross_device_reduce_", "allreduce_fusion_kernel_", "oneshotAllreduceFusionKernel", "twoshotAllreduceKernel"};

}  // namespace

bool waits_for_other_ranks(const std::string& kernel) {
    const std::string name = short_kernel_name(demangled(kernel));
    return std::ranges::any_of(waiting_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace kbench
