// Measures GEMM candidates on cold weights. A candidate's launches are captured in a CUDA graph and timed together, so
// that launches shorter than the host needs to issue them are timed too.
#include "kernels/gemm/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/gemm_types.h"
#include "kernels/gemm/operands.h"
#include "kernels/owned.h"

namespace kbench::cuda {
namespace {

constexpr std::size_t most_weight_bytes = std::size_t{1} << 30;
/// Bounds the time for small weights: those under 3/128 of L2 rotate through less than three times L2, and those under
/// 1/128 of it are measured warm.
constexpr std::int64_t most_copies = 128;
constexpr double run_us = 200;       ///< long enough for the events' resolution of about 0.5 us
constexpr double slow_factor = 1.5;  ///< a candidate that is slower than this times the best is dropped
constexpr int rounds = 7;

using Stream = OwnedStream;
using Event = OwnedEvent;
using Graph = OwnedGraph;
using GraphExec = OwnedGraphExec;
using Memory = OwnedMemory;

Stream make_stream() {
    cudaStream_t stream;
    KBENCH_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return Stream(stream);
}

/// Number of copies of the weights that together exceed three times L2, within the limits above.
std::int64_t copies_of(std::size_t weight_bytes) {
    int device = 0, l2_bytes = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
    const auto wanted = static_cast<std::int64_t>(3 * std::size_t(l2_bytes) / weight_bytes) + 1;
    const auto affordable = static_cast<std::int64_t>(std::max<std::size_t>(1, most_weight_bytes / weight_bytes));
    return std::min({wanted, affordable, most_copies});
}

/// The largest difference that rounding explains between two correct outputs on these operands. Outputs are sums of k
/// terms of size 1 / sqrt(k), so of order 1 and rarely over 6; the sum of absolute terms is about sqrt(k).
double rounding_allowance(const GemmProblem& p) {
    const double k = static_cast<double>(p.k), largest_output = 6, magnitude = std::sqrt(k);
    const double multiply = p.precision == Precision::tf32 ? 2 * unit_roundoff(p.precision) : 0;
    return 4 * (unit_roundoff(p.out_type) * largest_output + multiply +
                (1 + std::sqrt(k)) * accumulator_roundoff(p.precision) * magnitude);
}

/// Operands, outputs and events for one problem.
class Bench {
  public:
    Bench(const GemmProblem& problem, std::size_t workspace_bytes, const LaunchGemm& launch, cudaStream_t stream)
        : problem_(problem),
          launch_(launch),
          own_stream_(stream == nullptr ? make_stream() : Stream()),
          stream_(stream == nullptr ? own_stream_.get() : stream),
          weight_bytes_(aligned_bytes(stored_w(problem))),
          copies_(copies_of(weight_bytes_)),
          x_(allocate(aligned_bytes(stored_x(problem)))),
          w_(allocate(weight_bytes_ * copies_)),
          bias_(allocate(problem.bias ? problem.n * size_of(storage_type(problem.precision)) : 0)),
          out_(allocate(aligned_bytes(stored_out(problem)))),
          aux_(allocate(problem.has_aux() ? aligned_bytes(stored_out(problem)) : 0)),
          bias_gradient_(allocate(problem.bias_gradient ? aligned_bytes(stored_bias_gradient()) : 0)),
          workspace_(allocate(workspace_bytes)),
          difference_(allocate(sizeof(double))) {
        const DataType type = storage_type(problem.precision);
        const auto count = [&](std::size_t bytes) { return static_cast<std::int64_t>(bytes / size_of(type)); };
        const double weight_deviation = 1 / std::sqrt(static_cast<double>(problem.k));
        fill_normal(type, x_.get(), count(aligned_bytes(stored_x(problem))), 1, 1, stream_);
        fill_normal(type, w_.get(), count(weight_bytes_ * copies_), weight_deviation, 2, stream_);
        if (bias_) fill_normal(type, bias_.get(), problem.n, 1, 3, stream_);
        if (problem.gelu_gradient)
            fill_normal(type, aux_.get(), count(aligned_bytes(stored_out(problem))), 1, 4, stream_);
        results_.push_back({stored_out(problem), out_.get(), nullptr});
        if (problem.keeps_argument) results_.push_back({stored_out(problem), aux_.get(), nullptr});
        if (problem.bias_gradient) results_.push_back({stored_bias_gradient(), bias_gradient_.get(), nullptr});
    }

    /// Launches once, on the first copy of the weights; returns whether it was accepted. Clusters of some algorithms do
    /// not fit into every part of a device.
    bool launch_once(const GemmAlgorithm& candidate) {
        const bool accepted = launch_(candidate, pointers(0), workspace_.get(), stream_);
        if (!accepted) cudaGetLastError();  // or the next launch would be blamed
        return accepted;
    }

    /// Runs `candidate` on poisoned output. The first candidate's output becomes the reference for the others.
    bool correct(const GemmAlgorithm& candidate) {
        for (const Result& result : results_)  // NaN in every type
            KBENCH_CUDA(cudaMemsetAsync(result.data, 0xff, aligned_bytes(result.stored), stream_));
        if (!launch_once(candidate)) return false;
        const bool first = !results_.front().expected;
        bool agrees = true;
        for (Result& result : results_) {
            if (first) {
                const std::size_t bytes = aligned_bytes(result.stored);
                result.expected = allocate(bytes);
                KBENCH_CUDA(
                    cudaMemcpyAsync(result.expected.get(), result.data, bytes, cudaMemcpyDeviceToDevice, stream_));
            }
            agrees &= largest_error(result) <= rounding_allowance(problem_);
        }
        if (first && !agrees)  // not even finite
            for (Result& result : results_) result.expected.reset();
        return agrees;
    }

    double time_once_us(const GemmAlgorithm& candidate) {
        return timed_us([&] { launch_once(candidate); });
    }

    /// Number of launches that fill a run and touch every copy.
    int launches_per_run(double launch_us) const {
        return static_cast<int>(std::max<double>(static_cast<double>(copies_), std::ceil(run_us / launch_us)));
    }

    /// A graph of `launches` launches that rotate through the copies of the weights; null when capture refuses one.
    GraphExec record(const GemmAlgorithm& candidate, int launches) {
        bool accepted = true;
        KBENCH_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < launches; ++i)
            accepted &= launch_(candidate, pointers(i % copies_), workspace_.get(), stream_);
        cudaGraph_t captured = nullptr;
        const cudaError_t ended = cudaStreamEndCapture(stream_, &captured);
        const Graph graph(captured);
        if (!accepted) {
            cudaGetLastError();
            return nullptr;
        }
        KBENCH_CUDA(ended);
        cudaGraphExec_t exec;
        KBENCH_CUDA(cudaGraphInstantiate(&exec, captured, 0));
        return GraphExec(exec);
    }

    double time_us(const GraphExec& run) {
        return timed_us([&] { KBENCH_CUDA(cudaGraphLaunch(run.get(), stream_)); });
    }

  private:
    static constexpr std::size_t alignment = 256;

    /// An array that a launch writes, and what the first candidate wrote there.
    struct Result {
        Stored stored;
        void* data;
        Memory expected;
    };

    Stored stored_bias_gradient() const { return {1, problem_.n, problem_.n, 0, storage_type(problem_.precision)}; }

    double largest_error(const Result& result) {
        double largest = 0;
        const Stored& stored = result.stored;
        for (std::int64_t i = 0; i < problem_.batch; ++i) {
            const std::size_t offset = i * stored.stride * size_of(stored.type);
            double difference = 0;
            largest_difference(stored.type, static_cast<char*>(result.data) + offset,
                               static_cast<char*>(result.expected.get()) + offset, stored.rows, stored.columns,
                               stored.ld, static_cast<double*>(difference_.get()), stream_);
            KBENCH_CUDA(cudaMemcpyAsync(&difference, difference_.get(), sizeof difference, cudaMemcpyDefault, stream_));
            KBENCH_CUDA(cudaStreamSynchronize(stream_));
            largest = std::max(largest, difference);
        }
        return largest;
    }

    std::size_t aligned_bytes(const Stored& stored) const {
        const std::size_t bytes = stored.extent(problem_.batch) * size_of(stored.type);
        return (bytes + alignment - 1) / alignment * alignment;
    }

    GemmPointers pointers(std::int64_t copy) const {
        return {x_.get(),    static_cast<char*>(w_.get()) + copy * weight_bytes_,
                bias_.get(), out_.get(),
                aux_.get(),  bias_gradient_.get()};
    }

    template <typename Work>
    double timed_us(const Work& work) {
        KBENCH_CUDA(cudaEventRecord(start_.get(), stream_));
        work();
        KBENCH_CUDA(cudaEventRecord(stop_.get(), stream_));
        return us_between(start_, stop_);
    }

    const GemmProblem& problem_;
    const LaunchGemm& launch_;
    Stream own_stream_;
    cudaStream_t stream_;
    Event start_ = make_event(), stop_ = make_event();
    std::size_t weight_bytes_;
    std::int64_t copies_;
    Memory x_, w_, bias_, out_, aux_, bias_gradient_, workspace_, difference_;
    std::vector<Result> results_;  ///< one per output array
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// A candidate that is still in the race.
struct Contender {
    GemmAlgorithm algorithm;
    double once_us;
    GraphExec run;
    std::vector<double> run_times_us;
};

}  // namespace

GemmProblem problem_to_measure(GemmProblem problem) {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 30, step = 1024;
    const Stored x = stored_x(problem), out = stored_out(problem);
    const std::int64_t outputs = problem.has_aux() ? 2 : 1;
    const auto row_bytes = static_cast<std::int64_t>(x.ld * size_of(x.type) + outputs * out.ld * size_of(out.type));
    const std::int64_t rows = std::max<std::int64_t>(1, most_bytes / row_bytes / step) * step;
    if (problem.batch == 1) problem.m = std::min(problem.m, rows);
    return problem;
}

static Unsupported none_left(const GemmProblem& problem, std::size_t candidates) {
    return Unsupported(fmt::format("none of {} cuBLASLt algorithms computed gemm m {} n {} k {} in {}", candidates,
                                   problem.m, problem.n, problem.k, name(problem.precision)));
}

GemmAlgorithm first_to_start(const GemmProblem& problem, const std::vector<GemmAlgorithm>& candidates,
                             std::size_t workspace_bytes, const LaunchGemm& launch, cudaStream_t stream) {
    Bench bench(problem, workspace_bytes, launch, stream);
    for (const GemmAlgorithm& candidate : candidates)
        if (bench.correct(candidate)) return candidate;
    throw none_left(problem, candidates.size());
}

GemmAlgorithm fastest(const GemmProblem& problem, const std::vector<GemmAlgorithm>& candidates,
                      std::size_t workspace_bytes, const LaunchGemm& launch, cudaStream_t stream) {
    Bench bench(problem, workspace_bytes, launch, stream);
    std::vector<Contender> contenders;
    double best_us = std::numeric_limits<double>::infinity();
    for (const GemmAlgorithm& candidate : candidates) {
        if (!bench.correct(candidate)) continue;  // also the warm-up: a kernel's first launch loads it
        contenders.push_back({candidate, bench.time_once_us(candidate), nullptr, {}});
        best_us = std::min(best_us, contenders.back().once_us);
    }
    if (contenders.empty()) throw none_left(problem, candidates.size());
    const auto measured = static_cast<int>(contenders.size());
    std::erase_if(contenders, [&](const Contender& c) { return c.once_us > slow_factor * best_us; });

    const int launches = bench.launches_per_run(best_us);
    for (Contender& contender : contenders) contender.run = bench.record(contender.algorithm, launches);
    std::erase_if(contenders, [](const Contender& c) { return !c.run; });
    if (contenders.empty()) throw none_left(problem, candidates.size());
    for (Contender& contender : contenders) bench.time_us(contender.run);  // a graph's first launch uploads it
    // Rounds are interleaved, so that a drift of the clocks affects all candidates alike.
    for (int round = 0; round < rounds; ++round)
        for (Contender& contender : contenders) contender.run_times_us.push_back(bench.time_us(contender.run));

    for (Contender& contender : contenders) contender.algorithm.median_us = median(contender.run_times_us) / launches;
    GemmAlgorithm best = std::min_element(contenders.begin(), contenders.end(), [](const auto& a, const auto& b) {
                             return a.algorithm.median_us < b.algorithm.median_us;
                         })->algorithm;
    best.candidates = measured;
    return best;
}

}  // namespace kbench::cuda
