// The CPU as a backend: host memory, pinned OpenMP threads, a steady clock.
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/device/backend.h"
#include "bench/plan/plan.h"
#include "bench/profile/cpu_counters.h"
#include "bench/profile/cpu_state.h"
#include "cpu/blas.h"
#include "cpu/onednn/onednn.h"
#include "cpu/probe/probe.h"
#include "cpu/threads.h"
#include "models/base/error.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Memory that may still be taken: MemAvailable, or what the control group leaves when that is less.
std::int64_t available_memory() {
    std::int64_t available = 0;
    std::ifstream meminfo("/proc/meminfo");
    for (std::string key, unit; meminfo >> key;) {
        std::int64_t kib = 0;
        meminfo >> kib;
        std::getline(meminfo, unit);
        if (key == "MemAvailable:") available = kib * 1024;
    }
    std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
    std::int64_t limit = 0, used = 0;
    if (limit_file >> limit && used_file >> used) available = std::min(available, limit - used);
    return available;
}

class CpuBackend final : public Backend {
  public:
    CpuBackend() : info_(cpu::cpu_info()), cores_(cpu::physical_cores()), pinned_(cpu::pin_threads(cores_)) {}

    BackendKind kind() const override { return BackendKind::cpu; }

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
    std::int64_t free_bytes() const override { return available_memory(); }
    void upload(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
    void download(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
    void fill_bytes(void* device, int value, std::size_t bytes) override { std::memset(device, value, bytes); }
    void* host_view(void* device) override { return device; }
    void* stream() override { return nullptr; }
    void synchronize() override {}

    void prepare(const Plan& plan) override { plan_ = &plan; }

    std::vector<Measurement> measurements() override {
        return {{"forward", [this] { return std::vector<double>{forward_ms({})}; }}};
    }

    StepTimes step_times() override {
        StepTimes times;
        const auto empty = Clock::now();
        times.overhead_us = ms_since(empty) * 1e3;
        const auto whole = Clock::now();
        for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
            const auto start = Clock::now();
            plan_->run_step(s, nullptr);
            times.us.push_back(std::max(0.0, ms_since(start) * 1e3 - times.overhead_us));
        }
        times.whole_us = ms_since(whole) * 1e3 - times.overhead_us * static_cast<double>(times.us.size());
        return times;
    }

    std::function<std::vector<double>()> doubled(std::string_view op) override {
        return [this, kind = std::string(op)] {
            const double once = forward_ms({});
            return std::vector<double>{forward_ms(kind) - once};
        };
    }

    StepKernels record_kernels(int, double) override { throw DeviceError("steps on a CPU launch no kernels"); }

    void check(const CounterRequest& request) const override { check_cpu_request(request); }
    StepCounters count(const CounterRequest&) override {
        std::vector<Cost> costs;
        for (const PlannedStep& planned : plan_->steps())
            costs.push_back(step_cost(plan_->model(), planned.ops, plan_->precision()));
        return count_on_cpu(perf_, costs, [this](std::size_t step) { plan_->run_step(step, nullptr); });
    }

    std::vector<std::pair<std::string, Quantity>> probe_counters() override {
        HostCounters counters = HostCounters::open(perf_);
        counters.start();
        constexpr std::size_t bytes = std::size_t{8} << 20;
        void* memory = allocate(bytes);
        fill_bytes(memory, 1, bytes);  // something to count
        release(memory);
        const HostCounts counts = counters.stop();
        Quantity traffic = counts.dram_bytes.value ? counts.dram_bytes : counts.dram_read_bytes;
        if (counters.traffic_source().empty())
            traffic = Quantity::unavailable(fmt::format("{}", fmt::join(counters.why_not(), "; ")));
        return {{"cpu cycles", counts.cycles}, {"cpu memory traffic", traffic}};
    }

    std::vector<Ceiling> measure_ceilings(double seconds) override {
        return cpu::measure_ceilings(seconds, free_bytes());
    }

    int probe_version() const override { return cpu::probe_version; }

    MachineState& machine_state() override { return state_; }
    void add_libraries(std::map<std::string, std::string>& libraries) const override {
        libraries["onednn"] = cpu::onednn_version() + ", " + cpu::onednn_isa();
        libraries["blas"] = cpu::blas_version();
    }
    std::string unsupported(Precision precision) const override {
        return precision == Precision::fp64 ? "" : cpu::onednn_unsupported(precision);
    }
    int threads() const override { return static_cast<int>(cores_.size()); }
    std::int64_t cache_bytes() const override {
        return std::int64_t{info_.l3_bytes} * info_.l3_instances + std::int64_t{info_.l2_bytes} * threads();
    }
    bool pinned() const override { return pinned_; }
    std::int64_t column_multiple(Precision precision) const override {
        // Only AMX gains: GPT-2 large's head in bf16 takes 5.1 to 7.4 ms padded to whole tiles, 6.0 to 11.1 without
        // (three runs on 16 cores of an Emerald Rapids); fp32 and fp16 gain nothing.
        const bool amx = std::find(info_.isa.begin(), info_.isa.end(), "amx_bf16") != info_.isa.end();
        return precision == Precision::bf16 && amx ? 64 : 1;
    }

  private:
    /// The steps of op kind `twice` run two times in a row; none when it is empty.
    double forward_ms(std::string_view twice) {
        const auto start = Clock::now();
        for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
            plan_->run_step(s, nullptr);
            if (op_name(plan_->steps()[s].step) == twice) plan_->run_step(s, nullptr);
        }
        return ms_since(start);
    }

    const cpu::CpuInfo& info_;  ///< read before the threads are pinned
    std::vector<int> cores_;
    bool pinned_;
    const Plan* plan_ = nullptr;
    LinuxPerfSystem perf_;
    CpuState state_;
};

}  // namespace

DeviceBuffer::DeviceBuffer(Backend& backend, std::size_t bytes)
    : backend_(&backend),
      data_(bytes > 0 ? static_cast<std::byte*>(backend.allocate(bytes)) : nullptr),
      bytes_(bytes) {}

DeviceBuffer::~DeviceBuffer() {
    if (data_ != nullptr) backend_->release(data_);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace kbench
