// Asynchronous copies on the device's stream.
#include "bench/measure/point/cuda/copies.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/check.h"

namespace kbench::cuda {
namespace {

constexpr std::size_t most_pinned_bytes = std::size_t{1} << 30;

}  // namespace

PinnedBuffer::PinnedBuffer(std::size_t bytes) : bytes_(bytes) { KBENCH_CUDA(cudaMallocHost(&data_, bytes)); }

PinnedBuffer::~PinnedBuffer() {
    if (data_ != nullptr) cudaFreeHost(data_);
}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

void HostCopies::make_buffers() {
    if (output_.data() != nullptr) return;
    std::size_t largest = 0;
    for (const TensorId id : plan_.model().outputs)
        largest = std::max(largest, static_cast<std::size_t>(plan_.operand(id).bytes()));
    output_ = PinnedBuffer(std::min(most_pinned_bytes, largest));
    for (const TensorId id : plan_.model().inputs) {
        PinnedBuffer& input = inputs_.emplace_back(static_cast<std::size_t>(plan_.operand(id).bytes()));
        device_.download(input.data(), plan_.address(id), input.bytes());
    }
}

void HostCopies::enqueue_inputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        KBENCH_CUDA(cudaMemcpyAsync(plan_.address(plan_.model().inputs[i]), inputs_[i].data(), inputs_[i].bytes(),
                                    cudaMemcpyHostToDevice, static_cast<cudaStream_t>(device_.stream())));
}

void HostCopies::enqueue_outputs() {
    for (const TensorId id : plan_.model().outputs) {
        const auto* output = static_cast<const std::byte*>(plan_.address(id));
        const auto bytes = static_cast<std::size_t>(plan_.operand(id).bytes());
        for (std::size_t done = 0; done < bytes; done += output_.bytes())
            KBENCH_CUDA(cudaMemcpyAsync(output_.data(), output + done, std::min(output_.bytes(), bytes - done),
                                        cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(device_.stream())));
    }
}

}  // namespace kbench::cuda
