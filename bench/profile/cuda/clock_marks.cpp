// Each mark writes to its place's row of one table; keep() moves the table behind those of earlier launches, so that
// the host need not wait between two launches and the device stays as busy as it is without marks.
#include "bench/profile/cuda/clock_marks.h"

#include <algorithm>
#include <vector>

#include "bench/profile/clock_readings.h"
#include "kernels/check.h"
#include "kernels/probe/clock.h"

namespace kbench::cuda {
namespace {

using probe::ClockReading;

class CudaClockMarks final : public ClockMarks {
  public:
    CudaClockMarks(Device& device, int places, int launches)
        : device_(device),
          places_(places),
          launches_(launches),
          // A part of a GPU has SMs of any number of the whole.
          sms_(device.info().gpu.value().multiprocessors_of_device.value_or(device.multiprocessors())),
          table_(device, bytes_of_table()),
          kept_(device, bytes_of_table() * static_cast<std::size_t>(launches)) {
        probe::load_clock_reader();
        device.fill(table_.data(), 0, table_.bytes());
        device.synchronize();
    }

    void put(int place) override {
        probe::read_clocks(reinterpret_cast<ClockReading*>(table_.data()) + std::ptrdiff_t{place} * sms_, sms_,
                           device_.multiprocessors(), stream());
    }

    void keep() override {
        std::byte* const to = kept_.data() + bytes_of_table() * static_cast<std::size_t>(count_ % launches_);
        KBENCH_CUDA(cudaMemcpyAsync(to, table_.data(), table_.bytes(), cudaMemcpyDeviceToDevice, stream()));
        // No reading of this launch may look like one of the next.
        device_.fill(table_.data(), 0, table_.bytes());
        ++count_;
        is_read_ = false;
    }

    std::optional<double> mhz(int from, int to) override {
        if (!is_read_) {
            const auto launches = static_cast<std::size_t>(std::min(count_, launches_));
            readings_.resize(launches * bytes_of_table() / sizeof(ClockReading));
            if (launches > 0) device_.download(readings_.data(), kept_.data(), launches * bytes_of_table());
            is_read_ = true;
        }
        return clock_mhz({readings_, static_cast<std::size_t>(places_), static_cast<std::size_t>(sms_)},
                         static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    }

  private:
    cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }
    std::size_t bytes_of_table() const {
        return sizeof(ClockReading) * static_cast<std::size_t>(places_) * static_cast<std::size_t>(sms_);
    }

    Device& device_;
    int places_, launches_, sms_;
    DeviceBuffer table_, kept_;
    int count_ = 0;  ///< launches that were kept, also those that later ones have overwritten
    bool is_read_ = false;
    std::vector<ClockReading> readings_;
};

}  // namespace

std::unique_ptr<ClockMarks> make_clock_marks(Device& device, int places, int launches) {
    return std::make_unique<CudaClockMarks>(device, places, launches);
}

}  // namespace kbench::cuda
