// In words: the CPU time that a process did not get, and what held it back or was not looked at.
#include "analysis/machine/cpu_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::HasSubstr;

CpuShare idle() {
    CpuShare share;
    share.waited_share = Quantity::measured(0.002);
    share.steal_share = share.throttled_share = share.throttled_periods = share.quota_periods = Quantity::measured(0);
    share.involuntary_switches = Quantity::measured(31);
    share.load = Quantity::measured(1.9);
    share.pressure_share = Quantity::unavailable("no /proc/pressure/cpu");
    return share;
}

CpuShare under_a_quota() {
    CpuShare share = idle();
    share.quota_periods = Quantity::measured(118);
    share.throttled_periods = Quantity::measured(111);
    share.throttled_share = Quantity::measured(0.6);
    share.waited_share = Quantity::measured(0.7);
    return share;
}

TEST(CpuShareText, SaysWhatIsKnownAndNoMore) {
    CpuShare share = idle();
    EXPECT_EQ(cpu_share_text(share),
              "0 % waiting for a CPU, 0 % stolen by the hypervisor; 31 involuntary switches, load 1.9");
    share.steal_share = Quantity::unavailable("no");
    share.pressure_share = Quantity::measured(0.5);
    share.starved_samples = 12;
    EXPECT_EQ(
        cpu_share_text(share),
        "0 % waiting for a CPU; 31 involuntary switches, load 1.9, tasks of the host waited for 50 % of the time, 12 starved samples repeated");
    EXPECT_THAT(cpu_share_text(under_a_quota()), HasSubstr("60 % held back by a quota, 70 % waiting for a CPU"));
    EXPECT_EQ(cpu_share_lost(under_a_quota()), "60 % held back by a quota, 70 % waiting for a CPU");
    EXPECT_EQ(cpu_share_lost(idle()), "");
    EXPECT_EQ(cpu_share_lost({}), "not known");
    CpuShare nothing;
    nothing.waited_share = Quantity::unavailable("no schedstat");
    EXPECT_EQ(cpu_share_text(nothing), "not known: no schedstat");
}

TEST(CpuShareText, AWarningNamesTheCauseAndWhatHelps) {
    EXPECT_EQ(starvation_warning(idle()), "");
    CpuShare busy = idle();
    busy.waited_share = Quantity::measured(0.48);
    EXPECT_THAT(starvation_warning(busy), HasSubstr("lacked its CPUs for 48 % of the time"));
    EXPECT_THAT(starvation_warning(busy), HasSubstr("(waiting for a CPU): "));
    EXPECT_THAT(starvation_warning(busy), HasSubstr("end other work on this host"));
    EXPECT_THAT(starvation_warning(under_a_quota()), HasSubstr("(held back by a quota in 111 of 118 periods): "));
    EXPECT_THAT(starvation_warning(under_a_quota()), HasSubstr("than the quota has CPUs"));
    CpuShare stolen = idle();
    stolen.steal_share = Quantity::measured(0.2);
    EXPECT_THAT(starvation_warning(stolen), HasSubstr("stolen by the hypervisor"));
}

TEST(ThrottlingText, IsNoneSeenOnlyWhereSomethingLooked) {
    Conditions conditions;
    EXPECT_EQ(throttling_text(conditions), "none recorded") << "an older file";
    conditions.throttle_unavailable = "";
    EXPECT_EQ(throttling_text(conditions), "none seen");
    conditions.throttle_unavailable = "no thermal_throttle/package_throttle_count";
    EXPECT_EQ(throttling_text(conditions), "not known (no thermal_throttle/package_throttle_count)");
    conditions.throttle_reasons = {"sw_power_cap", "hw_slowdown"};
    EXPECT_EQ(throttling_text(conditions), "sw_power_cap, hw_slowdown");
}

TEST(ThrottlingText, NamesAQuotaThatHeldTheProcessBack) {
    Conditions conditions;
    conditions.cpu_share = under_a_quota();
    conditions.throttle_unavailable = "no count";
    EXPECT_EQ(throttling_text(conditions),
              "a quota held the process back in 111 of 118 periods; by heat not known (no count)");
    conditions.throttle_unavailable = "";
    EXPECT_THAT(throttling_text(conditions), HasSubstr("118 periods; none by heat seen"));
    conditions.cpu_share = idle();
    EXPECT_EQ(throttling_text(conditions), "none seen");
}

}  // namespace
}  // namespace kbench
