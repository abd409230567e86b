// Kernels are read from the graph through the driver, which also knows the libraries' kernels.
#include "bench/profile/cuda/captured_work.h"

#include <cuda.h>

#include "bench/device/cuda/capture.h"
#include "kernels/check.h"
#include "kernels/driver.h"

namespace kbench::cuda {
namespace {

Launch launch_of(cudaGraphNode_t node) {
    static const auto get_params =
        driver_function<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)>("cuGraphKernelNodeGetParams");
    CUDA_KERNEL_NODE_PARAMS params{};
    check_driver(get_params(node, &params), "cuGraphKernelNodeGetParams");
    const void* function = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
    return {function,
            {params.gridDimX, params.gridDimY, params.gridDimZ},
            {params.blockDimX, params.blockDimY, params.blockDimZ},
            params.sharedMemBytes};
}

}  // namespace

CapturedWork captured_work(cudaStream_t stream, const std::function<void()>& enqueue) {
    const Capture capture(stream, enqueue);
    CapturedWork work;
    KBENCH_CUDA(cudaGraphGetNodes(capture, nullptr, &work.nodes));
    std::vector<cudaGraphNode_t> nodes(work.nodes);
    if (!nodes.empty()) KBENCH_CUDA(cudaGraphGetNodes(capture, nodes.data(), &work.nodes));
    for (const cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type{};
        KBENCH_CUDA(cudaGraphNodeGetType(node, &type));
        if (type == cudaGraphNodeTypeKernel) work.launches.push_back(launch_of(node));
    }
    return work;
}

}  // namespace kbench::cuda
