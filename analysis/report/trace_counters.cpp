// A counter track has a sample a step or kernel, and says what was not counted.
#include "analysis/report/trace_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kbench {
namespace {

/// Samples over the forward, of which some may have no value.
class Samples {
  public:
    void add(Nanoseconds at, const std::optional<double>& value) {
        missing_ += !value;
        samples_.push_back({at, value.value_or(0)});
    }
    /// A track that ends with the forward; without any value it has no samples and says why. `note` is what is said of
    /// those without a value, where there are some.
    CounterTrack track(const Timeline& timeline, std::string name, std::string why_none, std::string_view note) && {
        if (missing_ == samples_.size()) return {std::move(name), std::move(why_none), "", {}};
        const std::string missing =
            missing_ > 0 ? fmt::format(fmt::runtime(note), missing_, samples_.size(), why_none) : "";
        samples_.push_back({timeline.forward.end, 0});
        return {std::move(name), "", missing, std::move(samples_)};
    }

  private:
    std::size_t missing_ = 0;
    std::vector<CounterTrack::Sample> samples_;
};

/// Why no step has the counter: what the run says of it, or that it was not asked for.
std::string why_not_counted(const Point& point, std::string_view metric) {
    const CounterRun& run = point.counters;
    if (!run.unavailable.empty()) return run.unavailable;
    const auto known = std::ranges::find(run.metrics, metric, &CountedMetric::name);
    if (known == run.metrics.end()) return fmt::format("{} was not counted; --metrics {} asks for it", metric, metric);
    if (!known->reason.empty()) return known->reason;
    for (const StepResult& step : point.steps)
        if (!step.counters_discarded.empty()) return step.counters_discarded;
    for (const StepResult& step : point.steps)
        if (const std::string why = elapsed_withheld(step); !why.empty() && step.counters.contains(std::string(metric)))
            return why;
    return fmt::format("no step has the counter {}", metric);
}

/// One sample a step; a step without a value shows 0, and the track says how many those are.
template <class ValueOf>
CounterTrack step_track(const Timeline& timeline, std::string name, std::string why_none, ValueOf value_of) {
    Samples samples;
    for (const StepInterval& step : timeline.steps) samples.add(step.start, value_of(*step.step));
    return std::move(samples).track(timeline, std::move(name), std::move(why_none),
                                    "{} of {} steps have no value and show 0");
}

CounterTrack counted_track(const Point& point, const Timeline& timeline, std::string name, const std::string& metric) {
    return step_track(timeline, std::move(name), why_not_counted(point, metric),
                      [&](const StepResult& step) { return counter_named(step, metric); });
}

std::optional<double> dram_bytes_per_s(const StepResult& step) {
    const std::optional<double> bytes = dram_traffic(counters_of(step)), us = step.device_us();
    return bytes && us && *us > 0 ? std::optional(*bytes / *us * 1e6) : std::nullopt;
}

/// The share of its time that a roof roof times of a step: rate over roof. Nothing where the work is the cost model's
/// and `counted` is asked for, or there is no roof.
std::optional<double> roofs_pct(const StepRoofTimes& roof_times, double time_us, std::optional<Level> level,
                                bool counted) {
    const RoofTime* roof_time = roof_times.at(level);
    if (roof_time == nullptr || time_us <= 0 || (counted && roof_time->origin == Origin::derived)) return std::nullopt;
    return 100 * roof_time->us / time_us;
}

/// The metric where it was counted; else, under its own name, the share that the time breakdown derives at `level`.
CounterTrack share_track(const Explanation& explanation, const Timeline& timeline, const std::string& name,
                         const std::string& metric, std::optional<Level> level) {
    const PointFacts& facts = explanation.facts;
    const Point& point = *facts.point;
    CounterTrack counted = counted_track(point, timeline, name, metric);
    if (!counted.samples.empty()) return counted;
    CounterTrack derived = step_track(timeline, name + " (derived)", "", [&](const StepResult& step) {
        const auto index = static_cast<std::size_t>(&step - point.steps.data());
        if (explanation.roof_times.empty()) return std::optional<double>();
        return roofs_pct(explanation.roof_times[index], facts.steps[index].time_us, level, level.has_value());
    });
    if (!derived.samples.empty()) return derived;
    std::string why = facts.unavailable.empty() ? facts.roofs.unavailable() : facts.unavailable;
    if (why.empty()) why = level ? why_not_counted(point, "dram_read_bytes") : "no roof of the unit was measured";
    counted.unavailable += "; not derived: " + why;
    return counted;
}

CounterTrack theoretical_track(const Point& point, const Timeline& timeline) {
    const std::string& unavailable = point.activity.unavailable;
    std::string why_none = unavailable.empty() ? "no kernel was recorded" : unavailable;
    Samples samples;
    for (const StepInterval& step : timeline.steps)
        for (const KernelInterval& kernel : step.kernels) {
            const Quantity& occupancy = kernel.kernel->theoretical_occupancy_pct;
            if (!occupancy.value) why_none = occupancy.reason;
            samples.add(kernel.start, occupancy.value);
        }
    return std::move(samples).track(timeline, "theoretical occupancy %", std::move(why_none),
                                    "{} of {} kernels have no value and show 0: {}");
}

/// Those that --metrics named. `core` is what is read anyway.
std::vector<std::string> requested_metrics(const CounterRun& run) {
    const auto is_metric = [&](const std::string& name) {
        return std::ranges::find(run.metrics, name, &CountedMetric::name) != run.metrics.end();
    };
    std::vector<std::string> names;
    bool is_set = false;
    for (const std::string& name : run.requested) {
        if (is_metric(name)) names.push_back(name);
        is_set |= !is_metric(name) && name != "core";
    }
    if (!is_set) return names;
    names.clear();
    for (const CountedMetric& metric : run.metrics) names.push_back(metric.name);
    return names;
}

}  // namespace

std::vector<CounterTrack> forward_counters(const Explanation& explanation, const Timeline& timeline) {
    const Point& point = *explanation.facts.point;
    std::vector<CounterTrack> tracks = {
        share_track(explanation, timeline, "Memory %", "memory_throughput", Level::dram),
        share_track(explanation, timeline, "Compute %", "sm_throughput", {}), theoretical_track(point, timeline),
        counted_track(point, timeline, "achieved occupancy %", "achieved_occupancy"),
        step_track(timeline, "DRAM GB/s", why_not_counted(point, "dram_read_bytes"), [](const StepResult& step) {
            const std::optional<double> per_s = dram_bytes_per_s(step);
            return per_s ? std::optional(*per_s * 1e-9) : std::nullopt;
        })};
    constexpr auto most_drawn = 6;  // a page of a viewer; steps have the others among their arguments
    const auto is_drawn = [](const CounterTrack& track) { return !track.samples.empty(); };
    for (const std::string& metric : requested_metrics(point.counters)) {
        tracks.push_back(counted_track(point, timeline, metric, metric));
        if (std::ranges::count_if(tracks, is_drawn) == most_drawn) break;
    }
    return tracks;
}

std::vector<CounterTrack> condition_counters(const Conditions& conditions, bool all) {
    struct Row {
        const char* name;
        std::optional<double> ConditionReading::*reading;
        Quantity Conditions::*mean;
    };
    constexpr Row rows[] = {
        {"SM clock MHz", &ConditionReading::sm_clock_mhz, &Conditions::sm_clock_mhz},
        {"memory clock MHz", &ConditionReading::memory_clock_mhz, &Conditions::memory_clock_mhz},
        {"power W", &ConditionReading::power_w, &Conditions::power_w},
        {"temperature C", &ConditionReading::temperature_c, &Conditions::temperature_c},
    };
    const std::size_t every = all ? 1 : conditions.readings.size() / 100 + 1;
    std::vector<CounterTrack> tracks;
    for (const Row& row : rows) {
        CounterTrack track;
        track.name = row.name;
        for (std::size_t i = 0; i < conditions.readings.size(); i += every) {
            const ConditionReading& reading = conditions.readings[i];
            if (reading.*row.reading)
                track.samples.push_back({nanoseconds(reading.at_s * 1e6), *(reading.*row.reading)});
        }
        const std::string& reason = (conditions.*row.mean).reason;
        if (track.samples.empty())
            track.unavailable = (conditions.*row.mean).value ? "the result holds the mean alone" : reason;
        tracks.push_back(std::move(track));
    }
    return tracks;
}

}  // namespace kbench
