// A CUDA graph before it is instantiated: what a function puts on a stream, without running it.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace kbench::cuda {

class Capture {
  public:
    /// Everything that `enqueue` launches must have run once before: loading a kernel is not allowed meanwhile.
    Capture(cudaStream_t stream, const std::function<void()>& enqueue);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    operator cudaGraph_t() const { return graph_; }

  private:
    cudaGraph_t graph_ = nullptr;
};

}  // namespace kbench::cuda
