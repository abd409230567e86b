// Its kernel is told to stop, and tells what it took, through host memory that is mapped: neither needs a stream that
// could wait for it.
#include "bench/measure/cuda/thief.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/thief.h"

namespace kbench::cuda {
namespace {

/// Host memory that kernels read and write where it is.
class MappedMemory {
  public:
    explicit MappedMemory(std::size_t bytes) {
        KBENCH_CUDA(cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped));
        std::memset(memory_, 0, bytes);
    }
    ~MappedMemory() { cudaFreeHost(memory_); }
    MappedMemory(const MappedMemory&) = delete;
    MappedMemory& operator=(const MappedMemory&) = delete;
    void* data() const { return memory_; }

  private:
    void* memory_ = nullptr;
};

/// A part of L2 that leaves the work beside it most of its own data.
constexpr std::int64_t part_of_l2 = 8;
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
          counts_(static_cast<std::size_t>(blocks_) * sizeof(probe::ThiefCount)),
          stop_(sizeof(unsigned)),
          order_(sizeof(probe::ThiefOrder)) {
        probe::load_thief();
        probe::stream_memory(probe::Traffic::write, {},
                             {buffer_.data(), nullptr, nullptr, static_cast<std::int64_t>(buffer_.bytes()), nullptr}, 1,
                             device.multiprocessors(), nullptr, stream());
        device.fill(sums_.data(), 0, sums_.bytes());
        device.synchronize();
        KBENCH_CUDA(cudaStreamSynchronize(stream()));
    }
    ~CudaThief() override {
        ask_to_stop(true);
        cudaStreamSynchronize(stream());
    }
    CudaThief(const CudaThief&) = delete;
    CudaThief& operator=(const CudaThief&) = delete;

    void start(Taken what, double bytes_per_s) override {
        const probe::Theft theft = theft_of(what);
        const std::int64_t bytes = what == Taken::l2 ? l2_bytes_ : static_cast<std::int64_t>(buffer_.bytes());
        const probe::ThiefOrder order = probe::order_of(theft, bytes, bytes_per_s * 1e-9, blocks_);
        if (is_running()) {
            write(order);
            // Blocks look for an order as often as they tell: when all have told twice, all follow it.
            wait_until_all_told();
            wait_until_all_told();
            return;
        }
        std::memset(counts_.data(), 0, static_cast<std::size_t>(blocks_) * sizeof(probe::ThiefCount));
        write(order);
        ask_to_stop(false);
        probe::ThiefTask task;
        task.theft = theft;
        task.blocks = blocks_;
        task.data = buffer_.data();
        task.bytes = bytes;
        task.bytes_per_ns = bytes_per_s * 1e-9;
        task.deadline_ns = probe::longest_theft_ns;
        task.stop = static_cast<const unsigned*>(stop_.data());
        task.order = static_cast<const probe::ThiefOrder*>(order_.data());
        task.counts = static_cast<probe::ThiefCount*>(counts_.data());
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
        ask_to_stop(true);
        KBENCH_CUDA(cudaStreamSynchronize(stream()));
    }

    Count count() const override {
        Count all;
        auto* const counts = static_cast<probe::ThiefCount*>(counts_.data());
        for (int block = 0; block < blocks_; ++block) {
            all.bytes += static_cast<double>(std::atomic_ref(counts[block].bytes).load());
            all.seconds += static_cast<double>(std::atomic_ref(counts[block].ns).load()) * 1e-9 / blocks_;
        }
        return all;
    }

  private:
    cudaStream_t stream() const { return stream_.get(); }
    std::uint64_t ns_of(int block) const {
        return std::atomic_ref(static_cast<probe::ThiefCount*>(counts_.data())[block].ns).load();
    }
    void write(const probe::ThiefOrder& order) {
        auto& shared = *static_cast<probe::ThiefOrder*>(order_.data());
        std::atomic_ref(shared.chunks).store(order.chunks);
        std::atomic_ref(shared.ns_per_chunk).store(order.ns_per_chunk);
        std::atomic_ref(shared.theft).store(order.theft);
    }
    void wait_until_all_told() const {
        std::vector<std::uint64_t> told;
        for (int block = 0; block < blocks_; ++block) told.push_back(ns_of(block));
        const auto end = std::chrono::steady_clock::now() + longest_start;
        for (int block = 0; block < blocks_; ++block)
            while (ns_of(block) == told[static_cast<std::size_t>(block)])
                if (std::chrono::steady_clock::now() > end)
                    throw DeviceError("the thief found no SMs that other work had left");
    }
    void ask_to_stop(bool stop) { std::atomic_ref(*static_cast<unsigned*>(stop_.data())).store(stop ? 1 : 0); }

    Device& device_;
    OwnStream stream_;
    int blocks_;
    std::int64_t l2_bytes_;  ///< the part of the buffer that stays in L2
    DeviceBuffer buffer_, sums_;
    MappedMemory counts_, stop_, order_;
};

}  // namespace

std::unique_ptr<Thief> make_thief(Device& device, int multiprocessors) {
    return std::make_unique<CudaThief>(device, multiprocessors);
}

}  // namespace kbench::cuda
