// Asynchronous copies on the device's stream.
#include "bench/measure/cuda/copies.h"

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
    if (logits_.data() == nullptr)
        logits_ = PinnedBuffer(std::min(most_pinned_bytes, static_cast<std::size_t>(plan_.logits_operand().bytes())));
    if (tokens_.data() != nullptr) return;
    tokens_ = PinnedBuffer(static_cast<std::size_t>(plan_.model().batch * plan_.model().seq) * sizeof(std::int32_t));
    device_.download(tokens_.data(), plan_.tokens(), tokens_.bytes());
}

void HostCopies::enqueue_tokens() {
    KBENCH_CUDA(cudaMemcpyAsync(plan_.tokens(), tokens_.data(), tokens_.bytes(), cudaMemcpyHostToDevice,
                                static_cast<cudaStream_t>(device_.stream())));
}

void HostCopies::enqueue_logits() {
    const auto* logits = static_cast<const std::byte*>(plan_.logits());
    const auto bytes = static_cast<std::size_t>(plan_.logits_operand().bytes());
    for (std::size_t done = 0; done < bytes; done += logits_.bytes())
        KBENCH_CUDA(cudaMemcpyAsync(logits_.data(), logits + done, std::min(logits_.bytes(), bytes - done),
                                    cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(device_.stream())));
}

}  // namespace kbench::cuda
