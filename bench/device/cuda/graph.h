// What the backend needs of CUDA's events and graphs: timing events, an instantiated graph, and which kernels a piece
// of work launches, read from a capture of it.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace kbench::cuda {

/// A timing event.
class Event {
  public:
    Event();
    ~Event();
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

/// To the nanosecond, which is finer than events tick. Both must have been passed.
double elapsed_ms(const Event& from, const Event& to);

/// An instantiated graph of what `enqueue` puts on `stream`. Everything must have run once before: loading a kernel is
/// not allowed inside a capture.
class Graph {
  public:
    Graph() = default;
    Graph(cudaStream_t stream, const std::function<void()>& enqueue);
    ~Graph();
    Graph(Graph&& other) noexcept { *this = std::move(other); }
    Graph& operator=(Graph&& other) noexcept {
        std::swap(exec_, other.exec_);
        return *this;
    }
    void launch(cudaStream_t stream) const;

  private:
    cudaGraphExec_t exec_ = nullptr;
};

/// What enqueueing adds to a launch on an idle device, some 10 us, is lost in one that takes longer than this.
inline constexpr double long_launch_ms = 250;

/// The last of `launches` in a row: the others keep the device busy while it is enqueued, so that its time is the
/// device's own.
double last_launch_ms(cudaStream_t stream, const Graph& graph, int launches);

/// A kernel launch as a graph keeps it: equal for the same function in the same shape.
struct Launch {
    const void* function;  ///< CUfunction or CUkernel
    std::array<unsigned, 3> grid, block;
    unsigned dynamic_shared_bytes;
    bool operator==(const Launch&) const = default;
};

/// What `enqueue` would put on a stream.
struct CapturedWork {
    std::size_t nodes = 0;         ///< kernels, copies, fills and all else
    std::vector<Launch> launches;  ///< the kernels
    bool operator==(const CapturedWork&) const = default;
};

/// Found by capturing `enqueue`; nothing runs.
CapturedWork captured_work(cudaStream_t stream, const std::function<void()>& enqueue);

}  // namespace kbench::cuda
