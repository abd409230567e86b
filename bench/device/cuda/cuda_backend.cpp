// The GPU as a backend: device memory, one stream, CUDA graphs, events.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "bench/device/backend.h"
#include "bench/device/cuda/graph.h"
#include "bench/measure/cuda/ceilings.h"
#include "bench/plan/plan.h"
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "bench/profile/cuda/activity.h"
#include "bench/profile/cuda/nvtx.h"
#include "bench/profile/cuda/range_profiler.h"
#include "bench/profile/cuda/record_kernels.h"
#include "bench/profile/nvml.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/spin.h"
#include "models/base/error.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;
using cuda::elapsed_ms;
using cuda::Event;
using cuda::Graph;

std::string runtime_version() {
    int version = 0;
    KBENCH_CUDA(cudaRuntimeGetVersion(&version));
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Page-locked host memory, so that copies run at the bus's speed.
class PinnedBuffer {
  public:
    PinnedBuffer() = default;
    explicit PinnedBuffer(std::size_t bytes) : bytes_(bytes) { KBENCH_CUDA(cudaMallocHost(&data_, bytes)); }
    ~PinnedBuffer() {
        if (data_ != nullptr) cudaFreeHost(data_);
    }
    PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class CudaBackend final : public Backend {
  public:
    CudaBackend() {
        KBENCH_CUDA(cudaGetDevice(&device_));
        KBENCH_CUDA(cudaGetDeviceProperties(&properties_, device_));
        KBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        const auto& u = properties_.uuid.bytes;
        std::string hex;
        for (const char byte : u) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        uuid_ = fmt::format("GPU-{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                            hex.substr(16, 4), hex.substr(20));
        state_ = std::make_unique<Nvml>(uuid_);
    }
    ~CudaBackend() override {
        graph_ = {};
        step_graph_ = {};
        cudaStreamDestroy(stream_);
    }

    BackendKind kind() const override { return BackendKind::cuda; }

    void* allocate(std::size_t bytes) override {
        void* memory = nullptr;
        KBENCH_CUDA(cudaMalloc(&memory, bytes));
        return memory;
    }
    void release(void* memory) noexcept override { cudaFree(memory); }
    std::int64_t free_bytes() const override {
        std::size_t free = 0, total = 0;
        KBENCH_CUDA(cudaMemGetInfo(&free, &total));
        return static_cast<std::int64_t>(free);
    }
    void upload(void* device, const void* host, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
        synchronize();
    }
    void download(void* host, const void* device, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
        synchronize();
    }
    void fill_bytes(void* device, int value, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemsetAsync(device, value, bytes, stream_));
    }
    void* host_view(void*) override { return nullptr; }
    void* stream() override { return stream_; }
    void synchronize() override { KBENCH_CUDA(cudaStreamSynchronize(stream_)); }

    void prepare(const Plan& plan) override {
        plan_ = &plan;
        host_tokens_ = {};  // those of another plan
        name_ranges();
        const auto start = Clock::now();
        enqueue_all();  // loads every kernel before capture: lazy loading is not allowed to happen inside
        synchronize();
        const double with_loading_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        work_ = work_by_step();
        graph_ = Graph(stream_, [this] { enqueue_all(); });
        forward_is_long_ =
            with_loading_ms > cuda::long_launch_ms && cuda::last_launch_ms(stream_, graph_, 1) > cuda::long_launch_ms;
        step_events_.clear();
        for (std::size_t i = 0; i <= empty_intervals + plan.steps().size(); ++i) step_events_.emplace_back();
        step_graph_ = Graph(stream_, [this] {
            for (std::size_t i = 0; i <= empty_intervals; ++i) record_step_event(i);
            for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
                plan_->run_step(s, stream_);
                record_step_event(empty_intervals + s + 1);
            }
        });
    }

    std::vector<Measurement> measurements() override {
        // The first is wanted of every plan, the copies of a model's alone: their buffers come with their first chunk.
        const auto make_host_buffers = [this] {
            const auto logits_bytes =
                std::min(most_pinned_bytes, static_cast<std::size_t>(plan_->logits_operand().bytes()));
            if (host_logits_.bytes() != logits_bytes) host_logits_ = PinnedBuffer(logits_bytes);
            const auto token_bytes =
                static_cast<std::size_t>(plan_->model().batch * plan_->model().seq) * sizeof(std::int32_t);
            if (host_tokens_.bytes() == token_bytes) return;
            host_tokens_ = PinnedBuffer(token_bytes);
            download(host_tokens_.data(), plan_->tokens(), token_bytes);
        };
        return {
            {"graph", [this] { return timed_chunk(forward_is_long_, [this] { graph_.launch(stream_); }); }},
            {"stream", [this] { return timed_chunk(forward_is_long_, [this] { enqueue_all(); }); }},
            {"enqueue", [this] { return enqueue_chunk(); }},
            {"host_to_device",
             [this, make_host_buffers] {
                 make_host_buffers();
                 return timed_chunk(false, [this] {
                     KBENCH_CUDA(cudaMemcpyAsync(plan_->tokens(), host_tokens_.data(), host_tokens_.bytes(),
                                                 cudaMemcpyHostToDevice, stream_));
                 });
             }},
            {"device_to_host",
             [this, make_host_buffers] {
                 make_host_buffers();
                 return timed_chunk(forward_is_long_, [this] { enqueue_copy_of_logits(); });
             }},
        };
    }

    StepTimes step_times() override {
        step_graph_.launch(stream_);
        synchronize();
        const auto interval_us = [this](std::size_t i) {
            return elapsed_ms(step_events_[i], step_events_[i + 1]) * 1e3;
        };
        std::vector<double> empty;
        for (std::size_t i = 0; i < empty_intervals; ++i) empty.push_back(interval_us(i));
        StepTimes times;
        times.overhead_us = summarise(empty).median;
        for (std::size_t i = empty_intervals; i + 1 < step_events_.size(); ++i)
            times.us.push_back(std::max(0.0, std::round((interval_us(i) - times.overhead_us) * 1e3) / 1e3));
        return times;
    }

    StepKernels record_kernels(int runs, double warm_up_s) override {
        return cuda::record_kernels(stream_, graph_, work_, properties_.multiProcessorCount, runs, warm_up_s);
    }

    std::function<std::vector<double>()> doubled(std::string_view op) override {
        auto twice = std::make_shared<Graph>(stream_, [&] {
            for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
                plan_->run_step(s, stream_);
                if (op_name(plan_->steps()[s].step.kind) == op) plan_->run_step(s, stream_);
            }
        });
        return [this, twice] { return doubled_chunk(*twice); };
    }

    void check(const CounterRequest& request) const override {
        std::string chip;
        try {
            chip = cuda::chip_of_device(device_);
        } catch (const DeviceError&) {
            return;  // count() will say why
        }
        const std::vector<std::string> known = metric_chips();
        if (std::ranges::find(known, chip) == known.end()) return;  // likewise
        const cuda::CuptiHost host(chip);
        for (const std::string& counter : counters_of(requested_metrics(metric_sets(chip), request)))
            host.require(counter);
    }

    /// Every pass is a whole forward, so what a step overwrites its predecessors have made anew.
    StepCounters count(const CounterRequest& request) override {
        const auto start = Clock::now();
        StepCounters result;
        result.discarded.resize(work_.size());
        result.by_step.resize(work_.size());
        result.run.chip = cuda::chip_of_device(device_);
        const std::vector<Metric> metrics = requested_metrics(metric_sets(result.run.chip), request);
        const std::size_t first = work_.size() - std::min(work_.size(), request.most_steps);
        std::vector<bool> counted(work_.size(), false);
        std::fill_n(counted.begin(), first, true);  // as good as: nobody asks for them
        try {
            if (std::any_of(work_.begin() + static_cast<std::ptrdiff_t>(first), work_.end(), is_one_kernel))
                count_ranges(cuda::RangeOf::kernel, metrics, first, counted, result);
        } catch (const DeviceError& error) {
            result.warning = fmt::format("counters are of ranges longer than their kernels, by call: {}", error.what());
        }
        if (std::ranges::find(counted, false) != counted.end())
            count_ranges(cuda::RangeOf::call, metrics, first, counted, result);
        result.run.metrics = describe_metrics(metrics);
        result.run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        return result;
    }

    std::vector<std::pair<std::string, Quantity>> probe_counters() override {
        const auto attempt = [](auto probe) {
            try {
                return Quantity::measured(probe());
            } catch (const DeviceError& error) {
                return Quantity::unavailable(error.what());
            }
        };
        const auto work = [this] { cuda::spin(10000, properties_.multiProcessorCount, stream_); };
        const Quantity kernels = attempt([&] {
            cuda::ActivityRecorder recorder;
            work();
            return static_cast<double>(recorder.take().size());
        });
        const Quantity cycles = attempt([&] {
            cuda::RangeProfiler profiler(device_, cuda::chip_of_device(device_), {"sm__cycles_active.avg"},
                                         cuda::RangeOf::kernel, 1);
            profiler.collect([](std::size_t) {}, 1, [&](std::size_t) { work(); });
            return profiler.values(0).front();
        });
        return {{"kernel records", kernels}, {"gpu counters", cycles}};
    }

    std::vector<Ceiling> measure_ceilings(double seconds) override { return cuda::measure_ceilings(*this, seconds); }

    MachineState& machine_state() override { return *state_; }

    std::optional<GpuInfo> gpu_info() const override {
        GpuInfo info;
        info.name = properties_.name;
        info.uuid = uuid_;
        info.driver = state_->driver_version();
        info.cuda_runtime = runtime_version();
        info.compute_capability_major = properties_.major;
        info.compute_capability_minor = properties_.minor;
        info.multiprocessors = properties_.multiProcessorCount;
        info.memory_bytes = static_cast<std::int64_t>(properties_.totalGlobalMem);
        info.l2_bytes = properties_.l2CacheSize;
        info.max_sm_clock_mhz = state_->max_sm_clock_mhz();
        info.max_memory_clock_mhz = state_->max_memory_clock_mhz();
        info.power_limit_w = state_->power_limit_w();
        return info;
    }

    void add_libraries(std::map<std::string, std::string>& libraries) const override {
        libraries["cuda"] = runtime_version();
        const std::size_t lt = cuda::cublaslt_version();
        libraries["cublaslt"] = fmt::format("{}.{}.{}", lt / 10000, lt / 100 % 100, lt % 100);
#ifdef KBENCH_HAVE_CUDNN
        if (const std::string version = cudnn_version(); !version.empty()) libraries["cudnn"] = version;
#endif
    }

    std::string unsupported(Precision) const override {
        if (properties_.major >= 8) return "";
        return fmt::format("{} has compute capability {}.{}; kbench's kernels need 8.0 or newer", properties_.name,
                           properties_.major, properties_.minor);
    }

    std::int64_t cache_bytes() const override { return properties_.l2CacheSize; }
    std::int64_t column_multiple(Precision) const override { return 64; }

  private:
    /// All logits, in turns through one buffer where they are large: page-locked memory is not to be had without end.
    void enqueue_copy_of_logits() {
        const auto* logits = static_cast<const std::byte*>(plan_->logits());
        const auto bytes = static_cast<std::size_t>(plan_->logits_operand().bytes());
        for (std::size_t done = 0; done < bytes; done += host_logits_.bytes())
            KBENCH_CUDA(cudaMemcpyAsync(host_logits_.data(), logits + done,
                                        std::min(host_logits_.bytes(), bytes - done), cudaMemcpyDeviceToHost, stream_));
    }

    void enqueue_all() {
        const cuda::NvtxRange forward("forward");
        for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
            const cuda::NvtxRange layer(range_names_[s].first), step(range_names_[s].second);
            plan_->run_step(s, stream_);
        }
    }

    void name_ranges() {
        range_names_.clear();
        for (const PlannedStep& planned : plan_->steps())
            range_names_.emplace_back(
                plan_->model().ops[planned.naming_op].layer,
                fmt::format("{} {} {}", op_name(planned.step), shape_text(planned.step), planned.provider->name));
    }

    std::vector<cuda::CapturedWork> work_by_step() {
        std::vector<cuda::CapturedWork> work;
        for (std::size_t s = 0; s < plan_->steps().size(); ++s)
            work.push_back(cuda::captured_work(stream_, [&] { plan_->run_step(s, stream_); }));
        return work;
    }

    static std::size_t launch_count(const cuda::CapturedWork& work) { return work.launches.size(); }
    static bool is_one_kernel(const cuda::CapturedWork& work) { return work.nodes == 1 && launch_count(work) == 1; }

    /// Runs the steps from `first` on in all passes, and gives `result` the values of those that are not `counted` yet
    /// and have a range of their own: by kernel those that are one kernel, by call all.
    void count_ranges(cuda::RangeOf range_of, const std::vector<Metric>& metrics, std::size_t first,
                      std::vector<bool>& counted, StepCounters& result) {
        const bool by_kernel = range_of == cuda::RangeOf::kernel;
        std::vector<std::size_t> range_of_step(work_.size());
        std::size_t ranges = 0;
        for (std::size_t s = first; s < work_.size(); ++s) {
            range_of_step[s] = ranges;
            ranges += by_kernel ? work_[s].launches.size() : 1;
        }
        cuda::RangeProfiler profiler(device_, result.run.chip, counters_of(metrics), range_of, ranges);
        const auto before_pass = [&](std::size_t pass) {
            const std::vector<cuda::CapturedWork> now = work_by_step();
            discard_changed(pass, now, result.discarded);
            if (by_kernel && !std::ranges::equal(now, work_, {}, launch_count, launch_count))
                throw DeviceError(fmt::format("counter pass {} had other kernels than the timing run", pass));
            for (std::size_t s = 0; s < first; ++s) plan_->run_step(s, stream_);
        };
        profiler.collect(before_pass, work_.size() - first,
                         [&](std::size_t call) { plan_->run_step(first + call, stream_); });
        for (std::size_t s = first; s < work_.size(); ++s) {
            if (counted[s] || (by_kernel && !is_one_kernel(work_[s]))) continue;
            result.by_step[s] = metric_values(metrics, profiler.counters(), profiler.values(range_of_step[s]));
            counted[s] = true;
        }
        result.run.passes += static_cast<int>(profiler.passes());
    }

    /// The kernels of a pass must be those that were timed.
    void discard_changed(std::size_t pass, const std::vector<cuda::CapturedWork>& now,
                         std::vector<std::string>& discarded) const {
        for (std::size_t s = 0; s < now.size(); ++s)
            if (now[s] != work_[s] && discarded[s].empty())
                discarded[s] = fmt::format("the kernels of counter pass {} were not those of the timing run", pass);
    }

    void record_step_event(std::size_t index) {
        KBENCH_CUDA(cudaEventRecordWithFlags(step_events_[index], stream_, cudaEventRecordExternal));
    }

    /// Runs `enqueue` several times with an event before, between and after, so that all but the first, which does not
    /// count, find the GPU busy and the CPU's own time stays out of the measurement. Once where it `is_long`.
    template <class Enqueue>
    std::vector<double> timed_chunk(bool is_long, Enqueue enqueue) {
        const std::size_t runs = is_long ? 1 : 6, first = is_long ? 0 : 1;
        while (chunk_events_.size() < runs + 1) chunk_events_.emplace_back();
        for (std::size_t r = 0; r < runs; ++r) {
            KBENCH_CUDA(cudaEventRecord(chunk_events_[r], stream_));
            enqueue();
        }
        KBENCH_CUDA(cudaEventRecord(chunk_events_[runs], stream_));
        synchronize();
        std::vector<double> times;
        for (std::size_t r = first; r < runs; ++r) times.push_back(elapsed_ms(chunk_events_[r], chunk_events_[r + 1]));
        return times;
    }

    /// The plain forward and `twice` in turn, without a pause: each of the latter less the mean of its two neighbours.
    std::vector<double> doubled_chunk(const Graph& twice) {
        constexpr std::size_t pairs = 4, launches = 2 * pairs + 1;
        while (chunk_events_.size() < launches + 1) chunk_events_.emplace_back();
        graph_.launch(stream_);
        for (std::size_t i = 0; i <= launches; ++i) {
            KBENCH_CUDA(cudaEventRecord(chunk_events_[i], stream_));
            if (i < launches) (i % 2 == 0 ? graph_ : twice).launch(stream_);
        }
        synchronize();
        const auto ms = [this](std::size_t i) { return elapsed_ms(chunk_events_[i], chunk_events_[i + 1]); };
        std::vector<double> differences;
        for (std::size_t i = 1; i < launches; i += 2) differences.push_back(ms(i) - (ms(i - 1) + ms(i + 1)) / 2);
        return differences;
    }

    /// The CPU's time to launch the graph, into an empty queue.
    std::vector<double> enqueue_chunk() {
        synchronize();
        const auto start = Clock::now();
        graph_.launch(stream_);
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        synchronize();
        return {ms};
    }

    static constexpr std::size_t most_pinned_bytes = std::size_t{1} << 30;

    /// Events one after another at the head of the step graph: what an event node itself takes.
    static constexpr std::size_t empty_intervals = 9;

    int device_ = 0;
    cudaDeviceProp properties_{};
    std::string uuid_;
    cudaStream_t stream_ = nullptr;
    const Plan* plan_ = nullptr;
    Graph graph_, step_graph_;
    bool forward_is_long_ = false;
    std::vector<std::pair<std::string, std::string>> range_names_;  ///< layer and step, for NVTX
    std::vector<cuda::CapturedWork> work_;                          ///< by step
    std::vector<Event> step_events_, chunk_events_;
    PinnedBuffer host_logits_, host_tokens_;
    std::unique_ptr<Nvml> state_;
};

}  // namespace

std::string cuda_unavailable() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return "";
    cudaGetLastError();
    return status == cudaSuccess ? "no CUDA device" : cudaGetErrorString(status);
}

std::unique_ptr<Backend> make_cuda_backend() {
    if (const std::string why = cuda_unavailable(); !why.empty()) throw DeviceError("no usable GPU: " + why);
    return std::make_unique<CudaBackend>();
}

}  // namespace kbench
