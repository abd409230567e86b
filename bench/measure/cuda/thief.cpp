// Its kernel is told to stop, and tells what it took, through host memory that is mapped: neither needs a stream that
// could wait for it.
#include "bench/measure/cuda/thief.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

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
    return static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / probe::memory_chunk_bytes) *
                                    probe::memory_chunk_bytes);
}
static_assert(probe::memory_chunk_bytes % probe::thief_chunk_bytes == 0);

probe::Theft theft_of(Taken what) {
    switch (what) {
        case Taken::dram: return probe::Theft::dram;
        case Taken::l2: return probe::Theft::l2;
        case Taken::compute: return probe::Theft::compute;
        case Taken::nothing: break;
    }
    throw UsageError("a thief that takes nothing is not started");
}

class CudaThief final : public Thief {
  public:
    explicit CudaThief(Device& rest)
        : device_(rest),
          blocks_(rest.multiprocessors() * probe::thief_blocks_per_sm),
          large_(rest, whole_chunks(times_l2 * rest.info().gpu.value().l2_bytes)),
          small_(rest, whole_chunks(rest.info().gpu.value().l2_bytes / part_of_l2)),
          sums_(rest, probe::thief_sums * sizeof(std::uint32_t)),
          counts_(static_cast<std::size_t>(blocks_) * sizeof(probe::ThiefCount)),
          stop_(sizeof(unsigned)) {
        probe::load_thief();
        for (const DeviceBuffer* buffer : {&large_, &small_})
            probe::stream_memory(
                probe::Traffic::write, {},
                {buffer->data(), nullptr, nullptr, static_cast<std::int64_t>(buffer->bytes()), nullptr}, 1,
                rest.multiprocessors(), nullptr, stream());
        rest.fill(sums_.data(), 0, sums_.bytes());
        rest.synchronize();
    }
    ~CudaThief() override {
        ask_to_stop(true);
        cudaStreamSynchronize(stream());
    }
    CudaThief(const CudaThief&) = delete;
    CudaThief& operator=(const CudaThief&) = delete;

    void start(Taken what, double bytes_per_s) override {
        stop();
        std::memset(counts_.data(), 0, static_cast<std::size_t>(blocks_) * sizeof(probe::ThiefCount));
        ask_to_stop(false);
        probe::ThiefTask task;
        task.theft = theft_of(what);
        task.blocks = blocks_;
        const DeviceBuffer& buffer = what == Taken::l2 ? small_ : large_;
        task.data = buffer.data();
        task.bytes = static_cast<std::int64_t>(buffer.bytes());
        task.bytes_per_ns = bytes_per_s * 1e-9;
        task.deadline_ns = probe::longest_theft_ns;
        task.stop = static_cast<const unsigned*>(stop_.data());
        task.counts = static_cast<probe::ThiefCount*>(counts_.data());
        task.sums = reinterpret_cast<std::uint32_t*>(sums_.data());
        probe::run_thief(task, stream());
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
        device_.synchronize();
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
    cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }
    void ask_to_stop(bool stop) { std::atomic_ref(*static_cast<unsigned*>(stop_.data())).store(stop ? 1 : 0); }

    Device& device_;
    int blocks_;
    DeviceBuffer large_, small_, sums_;
    MappedMemory counts_, stop_;
};

}  // namespace

std::unique_ptr<Thief> make_thief(Device& rest) { return std::make_unique<CudaThief>(rest); }

}  // namespace kbench::cuda
