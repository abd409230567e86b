#include "analysis/machine/tensor_cores.h"

#include <algorithm>
#include <limits>

#include "kbench/records.h"

namespace kbench {
namespace {

constexpr Precision matrices[] = {Precision::fp16, Precision::bf16, Precision::tf32};
constexpr Precision matrices_and_fp64[] = {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp64};

constexpr TensorCores chips[] = {
    {TensorFamily::mma_sync, "mma.sync", 89, matrices_and_fp64, "", true},
    {TensorFamily::wgmma, "wgmma", 90, matrices, "90a-real", true},
    {TensorFamily::tcgen05, "tcgen05", 119, matrices, "", false},
    {TensorFamily::mma_sync, "mma.sync", 129, matrices_and_fp64, "", true},
    {TensorFamily::unknown, "tcgen05", std::numeric_limits<int>::max(), matrices, "", false},
};

}  // namespace

const TensorCores& tensor_cores(int capability_major, int capability_minor) {
    const int capability = 10 * capability_major + capability_minor;
    return *std::ranges::find_if(chips, [&](const TensorCores& row) { return capability <= row.last; });
}

const TensorCores& tensor_cores(const GpuInfo& gpu) {
    return tensor_cores(gpu.compute_capability_major, gpu.compute_capability_minor);
}

std::span<const TensorCores> tensor_core_table() { return chips; }

}  // namespace kbench
