// The words for each cause of a lack stand in one table.
#include "analysis/machine/cpu_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// A share, what it is called, and what helps.
struct Cause {
    Quantity CpuShare::*share;
    std::string_view name, remedy;
};
constexpr Cause causes[] = {
    {&CpuShare::throttled_share, "held back by a quota", "run fewer --threads than the quota has CPUs, or raise it"},
    {&CpuShare::waited_share, "waiting for a CPU",
     "end other work on this host, leave it CPUs of its own (taskset), or run fewer --threads"},
    {&CpuShare::steal_share, "stolen by the hypervisor", "use a host or an instance with CPUs of its own"},
};

/// "in 111 of 118 periods", in which a quota held the process back; empty where none did, or that is not known.
std::string periods_text(const CpuShare& share) {
    const double periods = share.quota_periods.value.value_or(0), held = share.throttled_periods.value.value_or(0);
    return periods > 0 && held > 0 ? fmt::format("in {:.0f} of {:.0f} periods", held, periods) : "";
}

}  // namespace

std::string cpu_share_text(const CpuShare& share) {
    std::vector<std::string> shares, others;
    for (const Cause& cause : causes) {
        const Quantity& one = share.*cause.share;
        const bool is_quota = cause.share == &CpuShare::throttled_share;
        if (!one.value || (is_quota && share.quota_periods.value.value_or(0) <= 0)) continue;
        shares.push_back(fmt::format("{} {}", percent(*one.value), cause.name));
    }
    if (shares.empty()) shares.push_back("not known: " + share.waited_share.reason);
    if (share.involuntary_switches.value)
        others.push_back(fmt::format("{:.0f} involuntary switches", *share.involuntary_switches.value));
    if (share.load.value) others.push_back(fmt::format("load {:.1f}", *share.load.value));
    if (share.pressure_share.value)
        others.push_back(
            fmt::format("tasks of the host waited for {} of the time", percent(*share.pressure_share.value)));
    if (share.starved_samples > 0) others.push_back(fmt::format("{} starved samples repeated", share.starved_samples));
    return fmt::format("{}{}{}", fmt::join(shares, ", "), others.empty() ? "" : "; ", fmt::join(others, ", "));
}

std::string cpu_share_lost(const CpuShare& share) {
    constexpr double least_share = 0.005;  // less prints as 0 %
    std::vector<std::string> lost;
    const auto is_unknown = [&](const Cause& cause) { return !(share.*cause.share).value; };
    if (std::ranges::all_of(causes, is_unknown)) lost.emplace_back("not known");
    for (const Cause& cause : causes)
        if (const double part = (share.*cause.share).value.value_or(0); part >= least_share)
            lost.push_back(fmt::format("{} {}", percent(part), cause.name));
    if (share.starved_samples > 0) lost.push_back(fmt::format("{} starved samples repeated", share.starved_samples));
    return joined(lost, ", ");
}

std::string starvation_warning(const CpuShare& share, std::string_view meanwhile) {
    if (!share.starved()) return {};
    const auto share_of = [&](const Cause& cause) { return (share.*cause.share).value.value_or(0); };
    // Who waits for the next period is on a run queue meanwhile: a quota is the cause of both.
    const Cause& first = causes[0];
    const Cause& most = share_of(first) > most_lacked_share ? first : *std::ranges::max_element(causes, {}, share_of);
    const std::string periods = &most == &first ? periods_text(share) : "";
    return fmt::format(
        "this process lacked its CPUs for {} of the time while {} ({}{}{}): times and rates are of that, too; {}",
        percent(*share.lacked()), meanwhile, most.name, periods.empty() ? "" : " ", periods, most.remedy);
}

std::string throttling_text(const Conditions& conditions) {
    std::string quota = conditions.cpu_share ? periods_text(*conditions.cpu_share) : "";
    if (!quota.empty()) quota = "a quota held the process back " + quota;
    std::string other = "none recorded";
    if (!conditions.throttle_reasons.empty())
        other = joined(conditions.throttle_reasons, ", ");
    else if (conditions.throttle_unavailable && !conditions.throttle_unavailable->empty())
        other = fmt::format("{}not known ({})", quota.empty() ? "" : "by heat ", *conditions.throttle_unavailable);
    else if (conditions.throttle_unavailable)
        other = quota.empty() ? "none seen" : "none by heat seen";
    return fmt::format("{}{}{}", quota, quota.empty() ? "" : "; ", other);
}

}  // namespace kbench
