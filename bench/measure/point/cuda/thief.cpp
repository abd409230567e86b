// Its kernel is told what to do, and tells what it took, through device memory, which copies on a stream of their own
// write and read: no kernel ever reads host memory (kernels/probe/thief.h says why).
#include "bench/measure/point/cuda/thief.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/thief.h"

namespace kbench::cuda {
namespace {

/// Page-locked, so that copies to and from it wait for no kernel.
class PinnedMemory {
  public:
    explicit PinnedMemory(std::size_t bytes) {
        KBENCH_CUDA(cudaHostAlloc(&memory_, bytes, cudaHostAllocDefault));
        std::memset(memory_, 0, bytes);
    }
    ~PinnedMemory() { cudaFreeHost(memory_); }
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    void* data() const { return memory_; }

  private:
    void* memory_ = nullptr;
};

/// What the kernel looks at while it runs.
struct Control {
    probe::ThiefOrder order;
    unsigned stop = 0;
};

/// So small a part of L2 leaves the work beside it its own data, and is read again so soon that what streams through L2
/// meanwhile does not push it out.
constexpr std::int64_t part_of_l2 = 32;
/// Multiples of L2 that a buffer has which never stays there.
constexpr std::int64_t times_l2 = 8;

std::size_t whole_chunks(std::int64_t bytes) {
    return static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / probe::thief_chunk_bytes) *
                                    probe::thief_chunk_bytes);
}
static_assert(probe::thief_chunk_bytes % probe::memory_chunk_bytes == 0);

probe::Theft theft_of(Taken what) {
    switch (what) {
        case Taken::nothing: break;
        case Taken::compute: return probe::Theft::compute;
        case Taken::dram: return probe::Theft::dram;
        case Taken::l2: return probe::Theft::l2;
    }
    return probe::Theft::nothing;
}

/// A stream that waits for no other one.
class OwnStream {
  public:
    OwnStream() { KBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~OwnStream() { cudaStreamDestroy(stream_); }
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    cudaStream_t get() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

/// How long the first words of a thief may be waited for: its SMs may have to end other work.
constexpr std::chrono::milliseconds longest_start{200};

class CudaThief final : public Thief {
  public:
    CudaThief(Device& device, int multiprocessors)
        : device_(device),
          blocks_(multiprocessors),
          l2_bytes_(static_cast<std::int64_t>(whole_chunks(device.info().gpu.value().l2_bytes / part_of_l2))),
          buffer_(device, whole_chunks(times_l2 * device.info().gpu.value().l2_bytes)),
          sums_(device, probe::thief_sums * sizeof(std::uint32_t)),
          counts_(device, counts_bytes()),
          control_(device, sizeof(Control)),
          host_counts_(counts_bytes()),
          host_control_(sizeof(Control)) {
        probe::load_thief();
        probe::stream_memory(probe::Traffic::write, {},
                             {buffer_.data(), nullptr, nullptr, static_cast<std::int64_t>(buffer_.bytes()), nullptr}, 1,
                             device.multiprocessors(), nullptr, stream());
        device.fill(sums_.data(), 0, sums_.bytes());
        device.synchronize();
        KBENCH_CUDA(cudaStreamSynchronize(stream()));
    }
    ~CudaThief() override {
        control().stop = 1;
        cudaMemcpyAsync(control_.data(), &control(), sizeof(Control), cudaMemcpyHostToDevice, copies_.get());
        cudaStreamSynchronize(copies_.get());
        cudaStreamSynchronize(stream());
    }
    CudaThief(const CudaThief&) = delete;
    CudaThief& operator=(const CudaThief&) = delete;

    void start(Taken what, double bytes_per_s) override {
        const probe::Theft theft = theft_of(what);
        const std::int64_t bytes = what == Taken::l2 ? l2_bytes_ : static_cast<std::int64_t>(buffer_.bytes());
        control().order = probe::order_of(theft, bytes, bytes_per_s * 1e-9, blocks_);
        if (is_running()) {
            send_control();
            // Blocks look for an order as often as they tell: when all have told twice, all follow it.
            wait_until_all_told();
            wait_until_all_told();
            return;
        }
        control().stop = 0;
        send_control();
        KBENCH_CUDA(cudaMemsetAsync(counts_.data(), 0, counts_.bytes(), copies_.get()));
        KBENCH_CUDA(cudaStreamSynchronize(copies_.get()));
        auto* const sent = reinterpret_cast<const Control*>(control_.data());
        probe::ThiefTask task;
        task.theft = theft;
        task.blocks = blocks_;
        task.data = buffer_.data();
        task.bytes = bytes;
        task.bytes_per_ns = bytes_per_s * 1e-9;
        task.deadline_ns = probe::longest_theft_ns;
        task.stop = &sent->stop;
        task.order = &sent->order;
        task.counts = reinterpret_cast<probe::ThiefCount*>(counts_.data());
        task.sums = reinterpret_cast<std::uint32_t*>(sums_.data());
        device_.synchronize();  // its SMs must be empty
        probe::run_thief(task, stream());
        wait_until_all_told();
    }

    bool is_running() override {
        const cudaError_t status = cudaStreamQuery(stream());
        if (status == cudaErrorNotReady) {
            cudaGetLastError();  // an answer and no error; whoever checks a launch next must not find it
            return true;
        }
        KBENCH_CUDA(status);
        return false;
    }

    void stop() override {
        control().stop = 1;
        send_control();
        KBENCH_CUDA(cudaStreamSynchronize(stream()));
    }

    Count count() const override {
        Count all;
        for (const probe::ThiefCount& block : counts()) {
            all.bytes += static_cast<double>(block.bytes);
            all.seconds += static_cast<double>(block.ns) * 1e-9 / blocks_;
        }
        return all;
    }

  private:
    cudaStream_t stream() const { return stream_.get(); }
    std::size_t counts_bytes() const { return static_cast<std::size_t>(blocks_) * sizeof(probe::ThiefCount); }
    Control& control() const { return *static_cast<Control*>(host_control_.data()); }
    void send_control() {
        KBENCH_CUDA(
            cudaMemcpyAsync(control_.data(), &control(), sizeof(Control), cudaMemcpyHostToDevice, copies_.get()));
        KBENCH_CUDA(cudaStreamSynchronize(copies_.get()));
    }
    /// What each block last told.
    std::span<const probe::ThiefCount> counts() const {
        KBENCH_CUDA(cudaMemcpyAsync(host_counts_.data(), counts_.data(), counts_.bytes(), cudaMemcpyDeviceToHost,
                                    copies_.get()));
        KBENCH_CUDA(cudaStreamSynchronize(copies_.get()));
        return {static_cast<const probe::ThiefCount*>(host_counts_.data()), static_cast<std::size_t>(blocks_)};
    }
    void wait_until_all_told() const {
        const std::span<const probe::ThiefCount> now = counts();
        const std::vector<probe::ThiefCount> before(now.begin(), now.end());
        const auto has_told = [](const probe::ThiefCount& a, const probe::ThiefCount& b) { return a.ns != b.ns; };
        const auto end = std::chrono::steady_clock::now() + longest_start;
        while (!std::ranges::equal(counts(), before, has_told))
            if (std::chrono::steady_clock::now() > end)
                throw DeviceError("the thief found no SMs that other work had left");
    }

    Device& device_;
    OwnStream stream_, copies_;
    int blocks_;
    std::int64_t l2_bytes_;  ///< the part of the buffer that stays in L2
    DeviceBuffer buffer_, sums_, counts_, control_;
    PinnedMemory host_counts_, host_control_;
};

}  // namespace

std::unique_ptr<Thief> make_thief(Device& device, int multiprocessors) {
    return std::make_unique<CudaThief>(device, multiprocessors);
}

}  // namespace kbench::cuda
