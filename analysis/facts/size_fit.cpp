// Two equations in two unknowns, solved at the ends of each interval.
#include "analysis/facts/size_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kbench {
namespace {

constexpr std::size_t fewest_sizes = 3;

/// What grows is the FLOPs; the size itself where a step has none.
double work_of(const SizeTime& time) { return time.work_flops > 0 ? time.work_flops : time.factor; }

/// At the size that the step has in its model.
const SizeTime* own_size(const SizeScaling& scaling) {
    const auto own = std::ranges::find(scaling.times, 1.0, &SizeTime::factor);
    return own == scaling.times.end() ? nullptr : &*own;
}

std::string refusal(const SizeScaling& scaling) {
    if (!scaling.unavailable.empty()) return scaling.unavailable;
    const std::vector<SizeTime>& times = scaling.times;
    if (times.size() < fewest_sizes)
        return fmt::format("it was timed at {} sizes, and a line with a test of it needs {}", times.size(),
                           fewest_sizes);
    if (own_size(scaling) == nullptr) return "it was not timed at its own size";
    for (const SizeTime& time : times) {
        if (time.implementation != times.front().implementation)
            return fmt::format("at {} times its {} it was run by another implementation", time.factor, scaling.axis);
        if ((time.work_flops > 0) != (times.front().work_flops > 0)) return "the work is not known at every size";
        if (!(time.us.ci_low > 0) || !(time.us.median >= time.us.ci_low) || !(time.us.ci_high >= time.us.median) ||
            !std::isfinite(time.us.ci_high))
            return fmt::format("at {} times its {} there is no time", time.factor, scaling.axis);
    }
    for (std::size_t i = 1; i < times.size(); ++i) {
        if (!(work_of(times[i]) > work_of(times[i - 1])) || !(times[i].factor > times[i - 1].factor))
            return "its sizes do not rise";
        if (!(times[i].us.median > times[i - 1].us.median))
            return fmt::format("at {} times its {} it took no longer than at {}", times[i].factor, scaling.axis,
                               times[i - 1].factor);
    }
    return "";
}

/// One size: us = fixed * per_fixed + slope * per_slope.
struct Equation {
    double us, per_fixed, per_slope;
};

/// The fixed and the growing part at the size of which per_slope is 1.
std::pair<double, double> solve(const Equation& a, const Equation& b) {
    const double determinant = a.per_fixed * b.per_slope - b.per_fixed * a.per_slope;
    return {(a.us * b.per_slope - b.us * a.per_slope) / determinant,
            (a.per_fixed * b.us - b.per_fixed * a.us) / determinant};
}

/// A part that is not negative, wider by `misfit` to both sides.
Interval part(double value, double one_end, double other_end, double misfit) {
    const auto [low, high] = std::minmax({value, one_end, other_end});
    return {std::max(0.0, value), std::max(0.0, low - misfit), std::max(0.0, high + misfit)};
}

Interval over_clock(const Interval& us, double measured_mhz, const Interval& clock_mhz) {
    return {us.value * measured_mhz / clock_mhz.value, us.low * measured_mhz / clock_mhz.high,
            us.high * measured_mhz / clock_mhz.low};
}

SizeParts parts_of(const SizeScaling& scaling, const Interval& clock_mhz, bool slope_follows_clock) {
    const std::vector<SizeTime>& times = scaling.times;
    const auto mhz_of = [](const SizeTime& time) { return time.sm_clock_mhz.value.value_or(0); };
    const bool has_clocks =
        clock_mhz.low > 0 && std::ranges::all_of(times, [&](const SizeTime& time) { return mhz_of(time) > 0; });
    const SizeTime& own = *own_size(scaling);
    const double own_mhz = mhz_of(own);
    const auto at = [&](const SizeTime& time, double us) {
        const double slower = has_clocks ? own_mhz / mhz_of(time) : 1, work = work_of(time) / work_of(own);
        return Equation{us, slower, slope_follows_clock ? work * slower : work};
    };
    const SizeTime &first = times.front(), &middle = times[1], &last = times.back();
    const auto [fixed, slope] = solve(at(first, first.us.median), at(last, last.us.median));
    const auto [most_fixed, least_slope] = solve(at(first, first.us.ci_high), at(last, last.us.ci_low));
    const auto [least_fixed, most_slope] = solve(at(first, first.us.ci_low), at(last, last.us.ci_high));
    SizeParts parts;
    parts.misfit_us = std::abs(solve(at(first, first.us.median), at(middle, middle.us.median)).first - fixed);
    parts.fixed_us = part(fixed, least_fixed, most_fixed, parts.misfit_us);
    parts.slope_us = part(slope, least_slope, most_slope, parts.misfit_us);
    if (!has_clocks) return parts;
    parts.fixed_us = over_clock(parts.fixed_us, own_mhz, clock_mhz);
    if (slope_follows_clock) parts.slope_us = over_clock(parts.slope_us, own_mhz, clock_mhz);
    parts.misfit_us *= own_mhz / clock_mhz.value;
    return parts;
}

}  // namespace

SizeFit fit_size(const SizeScaling& scaling, const Interval& clock_mhz) {
    SizeFit fit{refusal(scaling), scaling.axis, {}, {}};
    if (!fit.unavailable.empty()) return fit;
    fit.by_clock = parts_of(scaling, clock_mhz, true);
    fit.by_memory = parts_of(scaling, clock_mhz, false);
    if (fit.by_clock.fixed_us.high <= 0)
        fit.unavailable = fmt::format("its time grows faster than its work with {}", scaling.axis);
    return fit;
}

}  // namespace kbench
