// A pass begins with the first launch call of an iteration and ends before that of the next. The device is waited for
// at both, so that all work of an iteration, and nothing else, is in its pass.
#include "profile/attach/counting.h"

#include <cuda.h>
#include <cupti.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "kbench/error.h"
#include "profile/attach/record_file.h"
#include "profile/attach/settings.h"
#include "profile/attach/watchdog.h"
#include "profile/cupti/range_profiler.h"
#include "profile/driver.h"

namespace kbench::attach {
namespace {

using Clock = std::chrono::steady_clock;

struct Counting {
    std::recursive_mutex mutex;
    std::optional<cuda::RangeProfiler> profiler;
    bool in_pass = false, done = false, in_range = false;
    std::vector<std::uint64_t> launch_of_range;  ///< in this pass, each counted from the iteration's first
    std::size_t passes = 0;
    std::uint64_t first_launch = 0;
    Clock::time_point begun;
};

/// Never destroyed: CUPTI may be gone when it would be.
Counting& counting() {
    static Counting& one = *new Counting;
    return one;
}

/// To wait for the end of such a kernel before another launch could be to wait for ever.
bool waits_for_others(const char* kernel) {
    return kernel != nullptr &&
           std::ranges::find(settings()->waiting, std::string_view(kernel)) != settings()->waiting.end();
}

void wait() { driver().check(driver().context_synchronize(), "cuCtxSynchronize"); }

void begin(Counting& all, std::uint64_t launch) {
    const Settings& asked = *settings();
    if (!all.profiler) {
        all.begun = Clock::now();
        CUcontext context = nullptr;
        driver().check(driver().context_get_current(&context), "cuCtxGetCurrent");
        CUdevice device = 0;
        driver().check(driver().context_get_device(&device), "cuCtxGetDevice");
        all.profiler.emplace(context, cuda::chip_name(device), asked.counters,
                             asked.ranges_of_calls ? cuda::RangeOf::call : cuda::RangeOf::kernel, asked.ranges);
    }
    if (asked.most_pass_seconds > 0)
        watch(std::chrono::seconds(asked.most_pass_seconds),
              fmt::format(
                  "nothing was counted: pass {} of {} had not ended after {} s, so the process was ended: kernels "
                  "of the program wait for each other, which counting does not allow, or it is stuck",
                  all.passes + 1, all.profiler->passes(), asked.most_pass_seconds));
    wait();
    all.first_launch = launch;
    all.launch_of_range.clear();
    all.profiler->start();
    all.in_pass = true;
}

void write_values(const Counting& all) {
    const cuda::RangeProfiler& profiler = *all.profiler;
    std::string names;
    for (const std::string& name : profiler.counters()) names += (names.empty() ? "" : ",") + json_text(name);
    write("{{\"kind\":\"counters\",\"counters\":[{}],\"passes\":{},\"seconds\":{:.6f},\"first_launch\":{}}}", names,
          all.passes, std::chrono::duration<double>(Clock::now() - all.begun).count(), all.first_launch);
    for (std::size_t range = 0; range < settings()->ranges; ++range) {
        std::string values;
        for (const double value : profiler.values(range))
            values += (values.empty() ? "" : ",") + (std::isfinite(value) ? fmt::format("{}", value) : "null");
        const std::uint64_t launch = settings()->ranges_of_calls ? all.launch_of_range.at(range) : range;
        write("{{\"kind\":\"counted\",\"launch\":{},\"values\":[{}]}}", launch, values);
    }
    flush_lines();
}

void end(Counting& all) {
    wait();
    all.in_pass = false;
    ++all.passes;
    const bool is_last = all.profiler->stop();
    unwatch();
    if (!is_last) return;
    all.done = true;
    all.profiler->decode();
    write_values(all);
    all.profiler.reset();
}

/// Runs `step`; what it throws ends the counting.
template <class Step>
void attempt(Counting& all, Step step) {
    try {
        step();
    } catch (const std::exception& error) {
        unwatch();
        all.done = true;
        all.in_pass = false;
        note(fmt::format("nothing was counted: {}", error.what()));
    }
}

}  // namespace

void count_before(std::uint64_t launch, const char* kernel) {
    const Settings& asked = *settings();
    if (asked.period == 0 || launch < asked.first_launch) return;
    Counting& all = counting();
    const std::lock_guard lock(all.mutex);
    if (all.done) return;
    attempt(all, [&] {
        const std::uint64_t place = (launch - asked.first_launch) % asked.period;
        if (place == 0) {
            if (all.in_pass) end(all);
            if (all.done) return;
            begin(all, launch);
        }
        if (!all.in_pass || !asked.ranges_of_calls || waits_for_others(kernel)) return;
        wait();
        all.profiler->push(all.launch_of_range.size());
        all.launch_of_range.push_back(place);
        all.in_range = true;
    });
}

void count_after() {
    if (!settings()->ranges_of_calls) return;
    Counting& all = counting();
    const std::lock_guard lock(all.mutex);
    if (!all.in_range) return;
    all.in_range = false;
    attempt(all, [&] {
        wait();
        all.profiler->pop();
    });
}

void end_counting() {
    Counting& all = counting();
    const std::lock_guard lock(all.mutex);
    if (all.in_pass) attempt(all, [&] { end(all); });
    if (!all.done && all.passes > 0)
        note(fmt::format("nothing was counted: the program ended after {} of {} passes, one an iteration", all.passes,
                         all.profiler->passes()));
}

}  // namespace kbench::attach
