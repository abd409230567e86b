#include "analysis/program/device_time.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace kbench {
namespace {

/// Until when the host was busy with launching an activity, at the least.
class CallTimes {
  public:
    explicit CallTimes(const ProgramFile& file) {
        for (const ProgramLaunch& launch : file.launches) by_correlation_.push_back(&launch);
        std::ranges::sort(by_correlation_, {}, &ProgramLaunch::correlation);
    }
    /// `is_first`: of its launch call. The call for a graph may last until long after its first nodes ran.
    std::optional<std::int64_t> of(const ProgramActivity& activity, bool is_first) const {
        if (by_correlation_.empty()) return std::nullopt;
        const auto after =
            std::ranges::upper_bound(by_correlation_, activity.correlation, {}, &ProgramLaunch::correlation);
        if (after == by_correlation_.begin()) return 0;
        const ProgramLaunch& launch = **std::prev(after);
        return is_first || launch.correlation != activity.correlation ? launch.end_ns : launch.start_ns;
    }

  private:
    std::vector<const ProgramLaunch*> by_correlation_;
};

}  // namespace

std::vector<OwnTime> own_times(const ProgramFile& file) {
    std::vector<std::size_t> order(file.activities.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return file.activities[i].start_ns; });
    const CallTimes calls(file);
    std::vector<OwnTime> times(order.size());
    std::optional<std::int64_t> busy_until;
    std::unordered_set<std::int64_t> seen;  // correlations
    for (const std::size_t i : order) {
        const ProgramActivity& activity = file.activities[i];
        const std::int64_t idle_from = busy_until.value_or(activity.start_ns);
        OwnTime& time = times[i];
        time.gap = std::max<std::int64_t>(0, activity.start_ns - idle_from);
        time.busy = std::max<std::int64_t>(0, activity.end_ns - std::max(activity.start_ns, idle_from));
        if (const std::optional<std::int64_t> called = calls.of(activity, seen.insert(activity.correlation).second))
            time.host_wait = *called > idle_from ? time.gap : 0;
        busy_until = std::max(idle_from, activity.end_ns);
    }
    return times;
}

}  // namespace kbench
