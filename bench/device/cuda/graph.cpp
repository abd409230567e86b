// Events, graphs, and kernels read from captured graphs through the driver, which also knows the libraries' kernels.
#include "bench/device/cuda/graph.h"

#include <cuda.h>

#include <cmath>

#include "bench/device/cuda/driver.h"
#include "kernels/check.h"

namespace kbench::cuda {
namespace {

/// A graph before it is instantiated.
class Capture {
  public:
    Capture(cudaStream_t stream, const std::function<void()>& enqueue) {
        KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        try {
            enqueue();
        } catch (...) {
            cudaStreamEndCapture(stream, &graph_);
            if (graph_ != nullptr) cudaGraphDestroy(graph_);
            throw;
        }
        KBENCH_CUDA(cudaStreamEndCapture(stream, &graph_));
    }
    ~Capture() {
        if (graph_ != nullptr) cudaGraphDestroy(graph_);
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    operator cudaGraph_t() const { return graph_; }

  private:
    cudaGraph_t graph_ = nullptr;
};

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

Event::Event() { KBENCH_CUDA(cudaEventCreate(&event_)); }
Event::~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
}

double elapsed_ms(const Event& from, const Event& to) {
    float ms = 0;
    KBENCH_CUDA(cudaEventElapsedTime(&ms, from, to));
    return std::round(static_cast<double>(ms) * 1e6) / 1e6;
}

Graph::Graph(cudaStream_t stream, const std::function<void()>& enqueue) {
    const Capture capture(stream, enqueue);
    KBENCH_CUDA(cudaGraphInstantiate(&exec_, capture, 0));
    KBENCH_CUDA(cudaGraphUpload(exec_, stream));
}

Graph::~Graph() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
}

void Graph::launch(cudaStream_t stream) const { KBENCH_CUDA(cudaGraphLaunch(exec_, stream)); }

double last_launch_ms(cudaStream_t stream, const Graph& graph, int launches) {
    const Event before, after;
    for (int i = 1; i < launches; ++i) graph.launch(stream);
    KBENCH_CUDA(cudaEventRecord(before, stream));
    graph.launch(stream);
    KBENCH_CUDA(cudaEventRecord(after, stream));
    KBENCH_CUDA(cudaStreamSynchronize(stream));
    return elapsed_ms(before, after);
}

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
