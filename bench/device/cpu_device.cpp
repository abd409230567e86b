// The CPU as a device: host memory, pinned OpenMP threads, a steady clock.
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "bench/device/cpu_quota.h"
#include "bench/device/cpu_threads.h"
#include "bench/device/device.h"
#include "bench/device/host_memory.h"
#include "cpu/threads.h"
#include "kbench/error.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

class CpuEvent final : public DeviceEvent {
  public:
    void record() override { at_ = Clock::now(); }
    double ms_since(const DeviceEvent& earlier) const override {
        return std::chrono::duration<double, std::milli>(at_ - static_cast<const CpuEvent&>(earlier).at_).count();
    }

  private:
    Clock::time_point at_;
};

class CpuGraph final : public DeviceGraph {
  public:
    explicit CpuGraph(std::function<void()> work) : work_(std::move(work)) {}
    void launch() override { work_(); }

  private:
    std::function<void()> work_;
};

std::pair<std::string, const char*> variable(const char* name) { return {name, std::getenv(name)}; }

class CpuDevice final : public Device {
  public:
    explicit CpuDevice(int threads) {
        const cpu::CpuInfo& cpu = cpu::cpu_info();
        std::vector<int> cpus = cpu::usable_cpus();
        const int cores = static_cast<int>(cpu::physical_cores().size());
        const std::optional<CpuQuota> quota = cpu_quota();
        ThreadChoice choice =
            choose_threads({.asked = threads,
                            .cores = cores,
                            .cpus = static_cast<int>(cpus.size()),
                            .quota = quota,
                            .omp_num_threads = std::getenv("OMP_NUM_THREADS"),
                            .omp_dynamic = std::getenv("OMP_DYNAMIC"),
                            .of_blas = {variable("OPENBLAS_NUM_THREADS"), variable("GOTO_NUM_THREADS")},
                            .thread_limit = omp_get_thread_limit()});
        info_.threads = cpu::start_threads(choice.threads);
        info_.threads_from = info_.threads < choice.threads ? "as many as started" : choice.from;
        info_.warnings = std::move(choice.warnings);
        if (quota) info_.cpu_quota = quota->cpus;
        info_.cpus = cpus;
        info_.cores = cores;
        cpus.resize(static_cast<std::size_t>(info_.threads));
        info_.kind = BackendKind::cpu;
        info_.pinned = cpu::pin_threads(cpus);
        info_.cache_bytes =
            std::int64_t{cpu.l3_bytes} * cpu.l3_instances + std::int64_t{cpu.l2_bytes} * std::min(info_.threads, cores);
    }

    const DeviceInfo& info() const override { return info_; }

    void* allocate(std::size_t bytes) override {
        // Whole 2 MiB pages where the system gives them: weights are streamed, and TLB misses are not the subject.
        constexpr std::size_t huge_page = std::size_t{2} << 20;
        const std::size_t alignment = bytes >= huge_page ? huge_page : 256;
        void* memory =
            std::aligned_alloc(alignment, std::max(alignment, (bytes + alignment - 1) / alignment * alignment));
        if (memory == nullptr) throw DeviceError(fmt::format("cannot allocate {} bytes of host memory", bytes));
        if (alignment == huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
        return memory;
    }
    void release(void* memory) noexcept override { std::free(memory); }
    std::int64_t free_bytes() const override { return available_host_memory(); }
    void upload(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
    void download(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
    void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void fill(void* device, int byte, std::size_t bytes) override { std::memset(device, byte, bytes); }
    void* host_view(void* device) override { return device; }

    void* stream() override { return nullptr; }
    void synchronize() override {}
    std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CpuEvent>(); }
    std::unique_ptr<DeviceGraph> capture(std::function<void()> enqueue) override {
        return std::make_unique<CpuGraph>(std::move(enqueue));
    }

  private:
    DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace kbench
