// Programmatic dependent launch: a kernel's launch overlaps the end of the kernel before it in the stream, which saves
// part of the microsecond between two kernels (CUDA C++ Programming Guide, "Programmatic Dependent Launch"; sm_90 and
// newer).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/check.h"
#include "kernels/compute_capability.h"

namespace kbench::cuda {

/// false turns the overlap off.
inline constexpr bool launches_overlap = true;

/// For the earlier kernel: the next may be launched once every block has called this or has ended.
__device__ inline void let_next_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// For the next kernel, before it accesses memory: waits for the end of the kernel before, and sees what it wrote.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Whether the current device can overlap launches. Each launch asks, so what is known of a device is kept.
inline bool can_overlap_launches() {
    thread_local int known_device = -1;
    thread_local bool can = false;
    int device = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    if (device != known_device) {
        can = compute_capability().major >= 9;
        known_device = device;
    }
    return can;
}

/// How a kernel is launched behind another.
struct Behind {
    int smem_bytes = 0;  ///< dynamic shared memory of a block
    int cluster = 1;     ///< neighbouring blocks that share their shared memory; more than 1 from sm_90 on
};

/// Launches `kernel`, which must call wait_for_previous() before it accesses what work in the stream writes, after
/// another kernel in the same stream. Before sm_90, or where anything but a kernel precedes it, it is an ordinary
/// launch.
template <typename... Parameters, typename... Arguments>
void launch_behind(void (*kernel)(Parameters...), dim3 grid, dim3 block, const Behind& how, cudaStream_t stream,
                   Arguments&&... arguments) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = static_cast<std::size_t>(how.smem_bytes);
    config.stream = stream;
    config.attrs = attributes;
    if (launches_overlap && can_overlap_launches()) {
        cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
        overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        overlap.val.programmaticStreamSerializationAllowed = 1;
    }
    if (how.cluster > 1) {
        cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = static_cast<unsigned>(how.cluster);
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    }
    KBENCH_CUDA(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

/// The same without dynamic shared memory and clusters.
template <typename... Parameters, typename... Arguments>
void launch_behind(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                   Arguments&&... arguments) {
    launch_behind(kernel, grid, block, Behind{}, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace kbench::cuda
