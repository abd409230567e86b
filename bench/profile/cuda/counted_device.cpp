// The order of a count: restart CUPTI where it was ended, make a context, run all passes.
#include "bench/profile/cuda/counted_device.h"

#include <fmt/format.h>

#include "bench/profile/cuda/activity.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/driver.h"
#include "models/base/nearest.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::cuda {
namespace {

/// More passes than any set of metrics needs. It bounds a loop that CUPTI should end.
constexpr std::size_t most_passes = 1000;

}  // namespace

std::string chip_of_device(int device) {
    if (needs_restart()) const ActivityRecorder recorder;
    return chip_name(device);
}

RangeProfiler range_profiler(int device, const std::vector<std::string>& counters, RangeOf range_of,
                             std::size_t ranges) {
    const std::string chip = chip_of_device(device);  // initialises the profiler
    KBENCH_CUDA(cudaFree(nullptr));
    return {current_context(), chip, counters, range_of, ranges};
}

void require_counter(const CuptiHost& host, const std::string& counter) {
    if (host.has(counter)) return;
    const std::string base = counter.substr(0, counter.find('.'));
    const bool has_base = host.has(base);
    const std::vector<std::string> names = has_base ? host.full_names(base) : host.base_names();
    throw UsageError(fmt::format("{} has no counter '{}'; {}", host.chip(), counter,
                                 nearest_name(has_base ? counter : base, names)));
}

void collect(RangeProfiler& profiler, const std::function<void(std::size_t pass)>& before_pass, std::size_t calls,
             const std::function<void(std::size_t call)>& run) {
    const bool by_call = profiler.range_of() == RangeOf::call;
    bool all = false;
    for (std::size_t pass = 0; !all; ++pass) {
        if (pass == most_passes) throw DeviceError(fmt::format("CUPTI wanted more than {} passes", most_passes));
        before_pass(pass);
        KBENCH_CUDA(cudaDeviceSynchronize());
        profiler.start();
        for (std::size_t call = 0; call < calls; ++call) {
            if (by_call) profiler.push(call);
            run(call);
            if (by_call) profiler.pop();
        }
        KBENCH_CUDA(cudaDeviceSynchronize());
        all = profiler.stop();
    }
    profiler.decode();
}

}  // namespace kbench::cuda
