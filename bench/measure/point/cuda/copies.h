// The copies of a model's inputs and outputs between the host and a GPU, to be timed.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/plan.h"

namespace kbench::cuda {

/// Page-locked host memory, so that copies run at the bus's speed.
class PinnedBuffer {
  public:
    PinnedBuffer() = default;
    explicit PinnedBuffer(std::size_t bytes);
    ~PinnedBuffer();
    PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class HostCopies {
  public:
    /// Both must outlive it. `plan` must be allocated.
    HostCopies(const Plan& plan, Device& device) : plan_(plan), device_(device) {}

    /// The host's side of the copies; does nothing when it is there.
    void make_buffers();
    void enqueue_inputs();
    /// All outputs, in turns through one buffer where they are large: page-locked memory is not to be had without end.
    void enqueue_outputs();

  private:
    const Plan& plan_;
    Device& device_;
    std::vector<PinnedBuffer> inputs_;  ///< parallel to the model's
    PinnedBuffer output_;
};

}  // namespace kbench::cuda
