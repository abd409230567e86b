// Timing of the probes. One ceiling after another, so that only one probe's memory is held at a time.
#include "bench/measure/machine/cuda/ceilings.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "analysis/machine/ceilings.h"
#include "bench/measure/machine/cuda/probes.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "kernels/spin.h"

namespace kbench::cuda {
namespace {

constexpr double launch_ms = 1.5;
constexpr auto rest = std::chrono::milliseconds(10);
constexpr int discarded_launches = 2;
constexpr int most_iterations = 1 << 26;

/// What the GPU spins for before the first event, so that the host has enqueued all that is timed by then. A host may
/// take 100 us for a graph of hundreds of nodes, and what the GPU waited for it would count as the nodes' time.
std::int64_t lead_cycles(Pace pace) { return pace == Pace::single ? 1'000'000 : 100'000; }

/// 12 launches count when all ceilings may take 5 seconds.
int launches(double seconds) { return std::clamp(static_cast<int>(std::lround(2.4 * seconds)), 7, 200); }

/// Times the variants of one probe.
class Bench {
  public:
    Bench(const ProbeContext& context, const CeilingKind& kind, const Probe& probe)
        : context_(context),
          kind_(kind),
          probe_(probe),
          before_(context.device.make_event()),
          after_(context.device.make_event()) {}

    Ceiling measure(const std::vector<ProbeVariant>& variants, int count, const Tried& tried) {
        target_work_ = probe_.pace != Pace::single ? work_of_a_launch(variants.front()) : 0;
        const ProbeVariant* best = nullptr;
        double best_value = 0;
        for (const ProbeVariant& variant : variants) {
            const double value = try_out(variant);
            if (tried) tried(kind_.name, variant.text, value);
            if (best != nullptr && !better(value, best_value)) continue;
            best = &variant;
            best_value = value;
        }
        return measure(*best, count);
    }

  private:
    bool is_latency() const { return kind_.unit == "us"; }
    bool better(double a, double b) const { return is_latency() ? a < b : a > b; }

    double time_ms(const ProbeVariant& variant, int iterations) {
        if (probe_.pace != Pace::host) spin(lead_cycles(probe_.pace), context_.gpu.multiprocessors, context_.stream);
        before_->record();
        variant.enqueue(iterations);
        after_->record();
        context_.device.synchronize();
        return after_->ms_since(*before_);
    }

    /// Work that takes about launch_ms. The first launch, which loads the kernel, does not count.
    double work_of_a_launch(const ProbeVariant& variant) {
        time_ms(variant, 1);
        int iterations = 1;
        double ms = time_ms(variant, iterations);
        while (ms < launch_ms / 4) {
            if (iterations > most_iterations)  // the compiler found that it computes nothing
                throw DeviceError(fmt::format("its loop takes {:.4f} ms, however often it goes round", ms));
            iterations *= static_cast<int>(std::clamp(launch_ms / ms, 2.0, 16.0));
            ms = time_ms(variant, iterations);
        }
        return variant.work * iterations * launch_ms / ms;
    }

    int iterations(const ProbeVariant& variant) const {
        return std::max(1, static_cast<int>(std::lround(target_work_ / variant.work)));
    }

    /// In the ceiling's unit.
    double value(const ProbeVariant& variant) {
        const int count = iterations(variant);
        const double ms = time_ms(variant, count), work = variant.work * count;
        if (is_latency()) return ms * 1e3 / work;
        return work / (ms * 1e-3) / (kind_.unit == "TFLOP/s" ? 1e12 : 1e9);
    }

    double try_out(const ProbeVariant& variant) {
        if (probe_.pace == Pace::rested) std::this_thread::sleep_for(rest);
        value(variant);
        const double first = value(variant), second = value(variant);
        return better(first, second) ? first : second;
    }

    Ceiling measure(const ProbeVariant& variant, int count) {
        std::vector<double> values, clocks_mhz;
        for (int i = 0; i < discarded_launches + count; ++i) {
            if (probe_.pace == Pace::rested) std::this_thread::sleep_for(rest);
            const double sample = value(variant);
            if (i < discarded_launches) continue;
            values.push_back(sample);
            clocks_mhz.push_back(clock_mhz());
        }
        const Summary summary = summarise(values);
        Ceiling ceiling;
        ceiling.name = kind_.name;
        ceiling.value = Quantity::measured(summary.median);
        ceiling.low = summary.ci_low;
        ceiling.high = summary.ci_high;
        ceiling.clock_mhz = summarise(clocks_mhz).median;
        return ceiling;
    }

    /// What the last launch wrote; 0 where it wrote nothing or ran too shortly. Clears it.
    double clock_mhz() {
        probe::Span span;
        context_.device.download(&span, context_.span, sizeof span);
        context_.device.fill(context_.span, 0, sizeof span);
        return span.mhz();
    }

    const ProbeContext& context_;
    const CeilingKind& kind_;
    const Probe& probe_;
    std::unique_ptr<DeviceEvent> before_, after_;
    double target_work_ = 0;
};

Ceiling measure(const ProbeContext& context, const CeilingKind& kind, int count, const Tried& tried) {
    std::string reason;
    try {
        const Probe& probe = probe_of(kind.name);
        return Bench(context, kind, probe).measure(probe.variants(context), count, tried);
    } catch (const Unsupported& error) {
        reason = error.what();
    } catch (const DeviceError& error) {
        reason = error.what();
    }
    cudaGetLastError();            // such as that memory was short, which the next launch would report as its own
    context.device.synchronize();  // throws where the device is lost
    Ceiling ceiling;
    ceiling.name = kind.name;
    ceiling.value = Quantity::unavailable(reason);
    return ceiling;
}

}  // namespace

std::vector<Ceiling> measure_ceilings(Device& device, double seconds, const Tried& tried) {
    const DeviceBuffer span(device, sizeof(probe::Span));
    device.fill(span.data(), 0, span.bytes());
    const ProbeContext context{device, static_cast<cudaStream_t>(device.stream()), device.info().gpu.value(),
                               reinterpret_cast<probe::Span*>(span.data())};
    std::vector<Ceiling> ceilings;
    for (const CeilingKind& kind : ceiling_kinds())
        if (kind.backend == "cuda") ceilings.push_back(measure(context, kind, launches(seconds), tried));
    return ceilings;
}

}  // namespace kbench::cuda
