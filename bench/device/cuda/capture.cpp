// Capture of a stream that ends also where enqueueing throws.
#include "bench/device/cuda/capture.h"

#include "kernels/check.h"

namespace kbench::cuda {

Capture::Capture(cudaStream_t stream, const std::function<void()>& enqueue) {
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

Capture::~Capture() {
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
}

}  // namespace kbench::cuda
